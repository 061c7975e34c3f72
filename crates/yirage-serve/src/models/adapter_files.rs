//! A folder of adapters that clients may load, and nothing of its place in what they are told.

use crate::error::ApiError;
use std::path::{Path, PathBuf};
use yirage_model::LoraAdapter;

/// Where clients may load adapters from, and for which model.
#[derive(Clone, Debug)]
pub struct AdapterFiles {
    /// The folder of the adapters.
    pub folder: PathBuf,
    /// The model's files.
    pub model: PathBuf,
}

impl AdapterFiles {
    /// The adapter of a client's path, which lies in the folder.
    pub(super) fn open(&self, path: &str) -> Result<LoraAdapter, ApiError> {
        let nowhere =
            || ApiError::field("lora_path", format!("expected an adapter of the server's folder, got {path:?}"));
        let folder = self.folder.canonicalize().map_err(|_| nowhere())?;
        let found = folder.join(path).canonicalize().map_err(|_| nowhere())?;
        if !found.starts_with(&folder) || found == folder {
            return Err(nowhere());
        }
        LoraAdapter::open(&found)
            .map_err(|error| ApiError::field("lora_path", without_place(&error.to_string(), &folder)))
    }
}

/// A message without the place of the server's folder.
pub(super) fn without_place(message: &str, folder: &Path) -> String {
    message.replace(&format!("{}/", folder.display()), "")
}
