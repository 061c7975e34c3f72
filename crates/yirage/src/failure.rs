//! Every way a command can end badly, with the exit code it ends in.
//!
//! 0 is success; 1 a failure of the input or the world; 2 wrong usage; 3 something this program or machine does not
//! support; 4 something that would not fit into memory; 5 results slower or worse than those before; 6 results that differ
//! from the reference; 130 an interrupt; 141 a
//! reader of standard output that went away, as other programs end by SIGPIPE.

use crate::console::{standard_output, visible};
use serde_json::json;
use std::error::Error as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;
use yirage_advisor::AdvisorError;
use yirage_convert::ConvertError;
use yirage_engine::EngineError;
use yirage_engine::sampling::ParamError;
use yirage_engine::text::StopError;
use yirage_graph::picture::TooLarge;
use yirage_graph::{JsonError, NpyError};
use yirage_hal::HalError;
use yirage_hub::HubError;
use yirage_loadgen::LoadError;
use yirage_mmap::FileError;
use yirage_model::ModelError;
use yirage_model::chat::ChatError;
use yirage_model::tokenizer::TokenizerError;
use yirage_packed::PackedError;
use yirage_plancache::{CallError, PlanFileError};
use yirage_registry::RegistryError;
use yirage_serve::ServeError;
use yirage_session::SessionError;

/// The exit code of what does not fit into memory.
pub(crate) const WOULD_NOT_FIT: u8 = 4;

/// Bytes of a thread's stack, as Rust's library makes it.
const STACK: u64 = 2 << 20;

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum CliFailure {
    /// Arguments that make no sense; the text names the option as it was given.
    #[error("{0}")]
    Usage(String),
    /// What clap has to say: errors of usage, but also help and version.
    #[error("{0}")]
    Clap(#[from] clap::Error),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The model's files.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The chat template.
    #[error("{0}; --raw sends the prompt as it is")]
    Chat(#[from] ChatError),
    /// The way to a model.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// Repacked weights on disk.
    #[error(transparent)]
    Packed(#[from] PackedError),
    /// Stop strings or ids.
    #[error("--stop: {0}")]
    Stop(#[from] StopError),
    /// The way to a device.
    #[error("{0}; see `yirage devices`")]
    Backend(#[from] RegistryError),
    /// An op that was to be timed.
    #[error(transparent)]
    Advisor(#[from] AdvisorError),
    /// The device.
    #[error(transparent)]
    Device(#[from] HalError),
    /// A file that could not be read, or is none.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that holds no graph.
    #[error("{}: {source}", path.display())]
    Graph {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: JsonError,
    },
    /// A file that holds no array of an input or for an output.
    #[error("{}: `{input}`: {source}", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// The input or output.
        input: String,
        /// What is wrong.
        source: NpyError,
    },
    /// A file that holds no plan for this device.
    #[error("{}: {source}", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: PlanFileError,
    },
    /// A model that was to be written anew.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// A graph that was to be called.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A graph that was to be drawn.
    #[error(transparent)]
    Picture(#[from] TooLarge),
    /// A server that cannot be.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A server that cannot be measured.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A file that could not be written, or a folder.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Ranks that could not be started, or have lost each other.
    #[error("{0}")]
    Ranks(String),
    /// A server could not open a model: what it says of that, and the exit code and kind of the cause.
    #[error("{0}")]
    Unopened(String, (u8, &'static str)),
    /// Something else went wrong; the text says what, where and what to do.
    #[error("{0}")]
    Other(String),
    /// Standard output took no more: its reader went away, or what it leads to is full.
    #[error("standard output: {0}; the rest of the result is lost")]
    Closed(io::Error),
    /// `yirage bench --compare`: so many rows are slower than before, beyond the noise.
    #[error("{0} of the results are slower than those they were compared with, beyond the noise of both")]
    Slower(usize),
    /// `yirage verify`: so many results are further from the reference than may be.
    #[error("{count} results on {backend} differ from the reference: {names}")]
    Wrong {
        /// How many.
        count: usize,
        /// The backend.
        backend: String,
        /// The first of them.
        names: String,
    },
    /// `yirage verify --compare`: so many things became worse.
    #[error("{0} results are worse than those they were compared with")]
    Worse(usize),
    /// The user interrupted; what there was has been printed.
    #[error("interrupted")]
    Interrupted,
}

impl CliFailure {
    /// An error about a file.
    pub(crate) fn io(path: &Path, source: io::Error) -> CliFailure {
        CliFailure::Io { path: path.to_path_buf(), source }
    }

    /// Exit code and the kind's name.
    pub(crate) fn code(&self) -> (u8, &'static str) {
        const UNSUPPORTED: (u8, &str) = (3, "unsupported");
        match self {
            CliFailure::Usage(_) | CliFailure::Stop(_) | CliFailure::Device(HalError::Option { .. }) => (2, "usage"),
            CliFailure::Hub(HubError::Malformed { .. }) => (2, "usage"),
            CliFailure::Serve(ServeError::Open { .. } | ServeError::NoModel | ServeError::Name { .. }) => (2, "usage"),
            CliFailure::Load(LoadError::Url { .. } | LoadError::Header { .. } | LoadError::Load { .. }) => (2, "usage"),
            CliFailure::Backend(RegistryError::Unknown { .. }) => (2, "usage"),
            CliFailure::Backend(_) => UNSUPPORTED,
            CliFailure::Engine(EngineError::Sampling(ParamError::OutOfRange { .. })) => (2, "usage"),
            CliFailure::Engine(EngineError::Device(HalError::Option { .. })) => (2, "usage"),
            CliFailure::Clap(e) if e.use_stderr() => (2, "usage"),
            CliFailure::Clap(_) => (0, "ok"),
            CliFailure::Engine(e) if e.is_unsupported() => UNSUPPORTED,
            CliFailure::Engine(e) if e.would_not_fit() => (WOULD_NOT_FIT, "would_not_fit"),
            CliFailure::Model(ModelError::Unsupported { .. } | ModelError::UnsupportedFormat { .. }) => UNSUPPORTED,
            CliFailure::Tokenizer(e) if e.is_unsupported() => UNSUPPORTED,
            CliFailure::Device(HalError::Unsupported { .. }) => UNSUPPORTED,
            CliFailure::Advisor(AdvisorError::Compile(_) | AdvisorError::Device(HalError::Unsupported { .. })) => {
                UNSUPPORTED
            }
            CliFailure::Convert(
                ConvertError::UnknownMix { .. } | ConvertError::UnknownFormat { .. } | ConvertError::Exists { .. },
            ) => (2, "usage"),
            CliFailure::Convert(e) if e.is_unsupported() => UNSUPPORTED,
            CliFailure::Plan { source: PlanFileError::Other { .. }, .. } => UNSUPPORTED,
            CliFailure::Picture(_)
            | CliFailure::Call(
                CallError::Compile(_) | CallError::Unsupported { .. } | CallError::Device(HalError::Unsupported { .. }),
            ) => UNSUPPORTED,
            CliFailure::Call(CallError::Device(HalError::OutOfMemory { .. })) => (WOULD_NOT_FIT, "would_not_fit"),
            CliFailure::Device(HalError::OutOfMemory { .. }) => (WOULD_NOT_FIT, "would_not_fit"),
            CliFailure::Slower(_) => (5, "slower"),
            CliFailure::Worse(_) => (5, "worse"),
            CliFailure::Wrong { .. } => (6, "wrong"),
            CliFailure::Unopened(_, code) => *code,
            CliFailure::Ranks(_) => (1, "ranks"),
            CliFailure::Interrupted => (130, "interrupted"),
            CliFailure::Closed(e) if e.kind() == io::ErrorKind::BrokenPipe => (141, "closed"),
            _ if self.is_out_of_memory() => (WOULD_NOT_FIT, "would_not_fit"),
            _ => (1, "failure"),
        }
    }

    /// Whether the system has refused memory, for whatever it was: a file that could not be mapped, for one.
    fn is_out_of_memory(&self) -> bool {
        let mut cause = self.source();
        while let Some(error) = cause {
            if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory) {
                return true;
            }
            cause = error.source();
        }
        false
    }

    /// The message with its causes, none said twice.
    fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(e) = cause {
            let more = e.to_string();
            if !text.contains(&more) {
                text.push_str(": ");
                text.push_str(&more);
            }
            cause = e.source();
        }
        text
    }
}

impl From<SessionError> for CliFailure {
    fn from(error: SessionError) -> CliFailure {
        match error {
            SessionError::Hub(e) => e.into(),
            SessionError::Model(e) => e.into(),
            SessionError::File(e) => e.into(),
            SessionError::Tokenizer(e) => e.into(),
            SessionError::Chat(e) => e.into(),
            SessionError::Engine(e) => e.into(),
            SessionError::Stop(e) => e.into(),
            SessionError::Folder { folder, source } => CliFailure::Io { path: folder, source },
            SessionError::Thread(e) => no_thread("the engine's thread", &e),
            SessionError::NoText { .. } => {
                CliFailure::Usage("--stop needs text, and the model has no tokenizer".into())
            }
            error @ SessionError::NoPictures { .. } => {
                ModelError::Unsupported { what: "a picture in the prompt".into(), why: error.to_string() }.into()
            }
            other => CliFailure::Other(other.to_string()),
        }
    }
}

/// Why there is no thread: one that is refused is memory that is refused.
pub(crate) fn no_thread(which: &str, error: &io::Error) -> CliFailure {
    if matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock) {
        let detail = format!("{which}: {error}");
        return HalError::OutOfMemory { pool: "threads", wanted: STACK, detail }.into();
    }
    CliFailure::Other(format!("{which}: {error}"))
}

/// Writes the failure to standard error, as text or (with `--json`) as one JSON object, and gives the exit code.
pub(crate) fn report(failure: &CliFailure, json: bool) -> u8 {
    let (code, kind) = failure.code();
    if let (CliFailure::Clap(help), 0) = (failure, code) {
        let printed = standard_output().and_then(|_| help.print().map_err(CliFailure::Closed));
        return printed.map_or_else(|failure| report(&failure, json), |()| 0);
    }
    // Nobody is left to tell when standard error itself fails.
    let _ = match failure {
        CliFailure::Clap(e) if !json => e.print(),
        CliFailure::Interrupted => Ok(()),
        // Whoever reads the first lines alone knows that there are more.
        CliFailure::Closed(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        _ if json => {
            let message = failure.chain();
            let error = json!({"error": {"code": code, "kind": kind, "message": message.trim_end()}});
            writeln!(io::stderr(), "{}", visible(&error.to_string()))
        }
        _ => writeln!(io::stderr(), "error: {}", visible(&failure.chain())),
    };
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_mmap::MapError;

    #[test]
    fn a_file_that_memory_has_no_room_for_would_not_fit() {
        let map = |source| {
            let error = MapError::Map { path: "model.gguf".into(), len: 44_928, source };
            CliFailure::from(ModelError::from(error)).code()
        };
        assert_eq!(map(io::ErrorKind::OutOfMemory.into()), (WOULD_NOT_FIT, "would_not_fit"));
        assert_eq!(map(io::ErrorKind::PermissionDenied.into()), (1, "failure"));
    }
}
