//! `--prompt-cache`: what a model has computed of a prompt, from a file at the beginning and to it at the end.

use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use crate::options::Layers;
use std::path::PathBuf;
use yirage_mmap::is_there;
use yirage_model::Checkpoint;
use yirage_session::{ModelFingerprint, ModelHandle, SessionError};

/// A file for a model's prompts.
pub(crate) struct PromptCache {
    path: PathBuf,
    model: ModelFingerprint,
    read_only: bool,
}

impl PromptCache {
    /// That of the options, for the model that is loaded.
    ///
    /// # Errors
    /// A model whose files cannot be read.
    pub(crate) fn resolve(
        layers: &Layers,
        checkpoint: &Checkpoint,
        console: &Console,
    ) -> Result<Option<PromptCache>, CliFailure> {
        let read_only = layers.switch("prompt-cache-ro")?;
        let Some(path) = layers.text("prompt-cache") else {
            if read_only {
                let (label, other) = (layers.label("prompt-cache-ro"), layers.label("prompt-cache"));
                console.note(&format!("{label} is not used: {other} names no file"));
            }
            return Ok(None);
        };
        let path = PathBuf::from(path);
        if let Some(missing) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
            let what = format!(
                "expected a file in a folder that is there, got {}; make {} first",
                path.display(),
                missing.display()
            );
            return Err(CliFailure::Usage(format!("{}: {what}", layers.label("prompt-cache"))));
        }
        Ok(Some(PromptCache { path, model: ModelFingerprint::of(checkpoint)?, read_only }))
    }

    /// Puts what the file has into the model's cache; nothing where there is no file yet.
    ///
    /// # Errors
    /// A file of something else, one that is spoilt, and devices whose caches cannot be written.
    pub(crate) fn restore(&self, model: &ModelHandle, console: &Console) -> Result<(), CliFailure> {
        if !is_there(&self.path).map_err(SessionError::from)? {
            return Ok(());
        }
        let (size, _) = model.restore_prefix(&self.path, self.model)?;
        let (positions, size) = (size.positions, bytes(size.bytes));
        console.note(&format!("{}: {positions} positions that were computed before ({size})", self.path.display()));
        Ok(())
    }

    /// Writes what the cache has of `tokens` to the file.
    ///
    /// # Errors
    /// A file that cannot be written, and devices whose caches cannot be read.
    pub(crate) fn keep(&self, model: &ModelHandle, tokens: Vec<u32>, console: &Console) -> Result<(), CliFailure> {
        if self.read_only {
            return Ok(());
        }
        let size = model.save_prefix(&self.path, self.model, tokens, Vec::new())?;
        let path = self.path.display();
        console.note(&match size.positions {
            0 => format!("{path}: not written, as prompt and answer fill no block of the cache"),
            positions => format!("{path}: {positions} positions are kept ({})", bytes(size.bytes)),
        });
        Ok(())
    }
}
