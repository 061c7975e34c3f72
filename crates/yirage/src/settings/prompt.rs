//! What the model is asked.

use crate::failure::Failure;
use crate::options::Layers;
use std::io::Read;
use std::path::Path;

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
    /// [`Failure::Usage`] when several are given or ids are none, [`Failure::Io`] for the file.
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
/// [`Failure::Io`] with the name, also for text that is not UTF-8; [`Failure::Other`] for too much of it.
pub(crate) fn read_input(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let limited = |input: &mut dyn Read, text: &mut String| input.take(MAX_BYTES + 1).read_to_string(text);
    let read = match path.to_str() {
        Some("-") => limited(&mut std::io::stdin().lock(), &mut text),
        _ => std::fs::File::open(path).and_then(|mut file| limited(&mut file, &mut text)),
    };
    let called = if path.to_str() == Some("-") { Path::new("standard input") } else { path };
    read.map_err(|e| Failure::io(called, e))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Failure::Other(format!("{}: more than {MAX_BYTES} bytes of text; split it", called.display())));
    }
    Ok(text)
}
