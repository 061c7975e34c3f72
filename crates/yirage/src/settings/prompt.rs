//! What the model is asked.

use crate::failure::Failure;
use crate::options::Layers;
use std::path::Path;
use yirage_mmap::{FileError, read_piped_text, read_within};

/// Longest text that is read from a file or standard input.
const MAX_BYTES: u64 = 256 << 20;

/// Where a prompt comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PromptSource {
    /// A text.
    Text(String),
    /// Ids, used as they are.
    Ids(Vec<u32>),
    /// Nobody said anything.
    BuiltIn,
}

impl PromptSource {
    /// Reads `--prompt`, `--prompt-file` and `--prompt-ids`.
    ///
    /// # Errors
    /// [`Failure::Usage`] when several are given or ids are none, [`Failure::File`] for the file.
    pub(crate) fn resolve(layers: &Layers) -> Result<PromptSource, Failure> {
        Ok(match layers.one_of(&["prompt", "prompt-file", "prompt-ids"])? {
            Some("prompt") => PromptSource::Text(layers.text("prompt").unwrap_or_default().to_owned()),
            Some("prompt-file") => {
                PromptSource::Text(read_input(Path::new(layers.text("prompt-file").unwrap_or_default()))?)
            }
            Some(_) => PromptSource::Ids(layers.ids("prompt-ids")?.unwrap_or_default()),
            None => PromptSource::BuiltIn,
        })
    }
}

/// The text of a file, or of standard input for `-`.
///
/// # Errors
/// [`Failure::File`] with the name, also for text that is not UTF-8 and for too much of it.
pub(crate) fn read_input(path: &Path) -> Result<String, Failure> {
    if path.to_str() != Some("-") {
        return Ok(read_piped_text(path, MAX_BYTES)?);
    }
    let called = Path::new("standard input");
    let bytes = read_within(std::io::stdin().lock(), called, MAX_BYTES)?;
    String::from_utf8(bytes).map_err(|e| {
        let offset = e.utf8_error().valid_up_to();
        FileError::Utf8 { path: called.to_path_buf(), offset }.into()
    })
}
