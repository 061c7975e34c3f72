//! What the model is asked.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;
use yirage_mmap::{FileError, read_piped_text, read_within};

/// Longest text that is read from a file or standard input.
const MAX_BYTES: u64 = 256 << 20;

/// How long standard input is waited for without a word.
const UNTOLD: Duration = Duration::from_secs(2);

/// Where a prompt comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PromptSource {
    /// A text.
    Text(String),
    /// Ids, used as they are.
    Ids(Vec<u32>),
    /// Nobody said anything, and nobody sits at a terminal to say it.
    BuiltIn,
    /// Somebody at a terminal will say it.
    Conversation,
}

impl PromptSource {
    /// Reads `--prompt`, `--prompt-file` and `--prompt-ids`. A text that is piped in is the prompt, or stands before the one
    /// of `--prompt`.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] when several are given or ids are none, [`CliFailure::File`] for the file or standard input.
    pub(crate) fn resolve(layers: &Layers, console: &Console) -> Result<PromptSource, CliFailure> {
        Ok(match layers.one_of(&["prompt", "prompt-file", "prompt-ids"])? {
            Some("prompt") => {
                let prompt = layers.text("prompt").unwrap_or_default();
                PromptSource::Text(match piped(console)? {
                    Some(piped) => format!("{piped}\n\n{prompt}"),
                    None => prompt.to_owned(),
                })
            }
            Some("prompt-file") => {
                PromptSource::Text(read_input(Path::new(layers.text("prompt-file").unwrap_or_default()))?)
            }
            Some(_) => PromptSource::Ids(layers.ids("prompt-ids")?.unwrap_or_default()),
            None if is_conversation(console) => PromptSource::Conversation,
            None => piped(console)?.map_or(PromptSource::BuiltIn, PromptSource::Text),
        })
    }
}

/// Whether somebody at a terminal can hold a conversation and sees the answers.
fn is_conversation(console: &Console) -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !console.json
}

/// The text that is piped in, without its last line end; none from a terminal, and none where nothing comes.
fn piped(console: &Console) -> Result<Option<String>, CliFailure> {
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let (read, end) = mpsc::channel::<()>();
    let console = *console;
    // A pipe that nobody closes would be waited for without a word.
    let told = std::thread::Builder::new().name("standard-input".into()).spawn(move || {
        if end.recv_timeout(UNTOLD) == Err(RecvTimeoutError::Timeout) {
            console.note("reading the prompt from standard input; `< /dev/null` leaves that out");
        }
    });
    let text = read_input(Path::new("-"));
    drop(read);
    // Without that thread nothing is said, and all else is the same.
    let _ = told.map(JoinHandle::join);
    let text = text?;
    let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    Ok((!text.trim().is_empty()).then(|| text.to_owned()))
}

/// The text of a file, or of standard input for `-`.
///
/// # Errors
/// [`CliFailure::File`] with the name, also for text that is not UTF-8 and for too much of it.
pub(crate) fn read_input(path: &Path) -> Result<String, CliFailure> {
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
