//! Slots: numbers by which clients of llama.cpp's server find a prompt and its answer again, to write them to a file and to
//! read them back.
//!
//! The cache itself has no slots: it finds every prompt by its beginning. A slot is the name of what the last request that
//! gave its number has computed, for each caller apart.

use crate::error::ApiError;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use yirage_session::{ModelFingerprint, ModelHandle, PrefixSize, SessionError};

/// Where slots are written, and of which model.
#[derive(Clone, Debug)]
pub struct SlotFiles {
    /// The folder.
    pub folder: PathBuf,
    /// The model.
    pub model: ModelFingerprint,
}

/// A caller's slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SlotKey {
    pub(crate) id: usize,
    /// What keeps the caller's prompts apart from those of others.
    pub(crate) salt: Vec<u8>,
}

/// The slots of a model.
#[derive(Default)]
pub(crate) struct Slots {
    files: Option<SlotFiles>,
    /// Tokens of the last prompt and answer.
    last: Mutex<HashMap<SlotKey, Vec<u32>>>,
}

impl Slots {
    pub(crate) fn with_files(files: SlotFiles) -> Slots {
        Slots { files: Some(files), last: Mutex::default() }
    }

    fn last(&self) -> MutexGuard<'_, HashMap<SlotKey, Vec<u32>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a request has computed.
    pub(crate) fn note(&self, slot: SlotKey, tokens: Vec<u32>) {
        self.last().insert(slot, tokens);
    }

    /// Forgets what a slot names; how many tokens that were.
    pub(crate) fn erase(&self, slot: &SlotKey) -> usize {
        self.last().remove(slot).map_or(0, |tokens| tokens.len())
    }

    /// Writes what a slot names.
    ///
    /// # Errors
    /// 501 where nothing is written, 400 for a name that is none and for a slot that names nothing.
    pub(crate) fn save(&self, model: &ModelHandle, slot: &SlotKey, name: &str) -> Result<PrefixSize, ApiError> {
        let (path, files) = self.path(name)?;
        let nothing = || {
            let what = format!("slot {} names nothing: give `id_slot` with /completion first", slot.id);
            ApiError::field("id", what)
        };
        let tokens = self.last().get(slot).cloned().ok_or_else(nothing)?;
        model.save_prefix(&path, files.model, tokens, slot.salt.clone()).map_err(|error| of_file(error, name))
    }

    /// Puts what a file has into the cache, and names it by a slot.
    ///
    /// # Errors
    /// As [`Slots::save`]; a file that is not there or of something else.
    pub(crate) fn restore(&self, model: &ModelHandle, slot: SlotKey, name: &str) -> Result<PrefixSize, ApiError> {
        let (path, files) = self.path(name)?;
        let restored = model.restore_prefix(&path, files.model);
        let (size, tokens) = restored.map_err(|error| of_file(error, name))?;
        self.note(slot, tokens);
        Ok(size)
    }

    /// A file in the folder.
    fn path(&self, name: &str) -> Result<(PathBuf, &SlotFiles), ApiError> {
        let unsupported = || {
            let what = "slots are not written to files here; start the server with --slot-save-path FOLDER";
            ApiError { code: Some("unsupported"), ..ApiError::status(StatusCode::NOT_IMPLEMENTED, what) }
        };
        let files = self.files.as_ref().ok_or_else(unsupported)?;
        let is_name = Path::new(name).file_name().is_some_and(|file| file == name) && !name.contains(['/', '\\', '\0']);
        if !is_name {
            let what = format!("expected the name of a file in the server's folder of slots, got {name:?}");
            return Err(ApiError::field("filename", what));
        }
        Ok((files.folder.join(name), files))
    }
}

/// An error of a file, by its name alone: where it lies is the server's own.
fn of_file(error: SessionError, name: &str) -> ApiError {
    match error {
        SessionError::PrefixFile(error) => ApiError::field("filename", format!("{name}: {}", error.what)),
        SessionError::File(_) => {
            let what = format!("expected the name of a file that was written here, got {name:?}");
            ApiError { param: Some("filename".into()), ..ApiError::status(StatusCode::NOT_FOUND, what) }
        }
        error => error.into(),
    }
}
