//! Why a family has no usable device here, and what to do.

use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Why a family has no usable device here.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ProbeError {
    /// The family exists on another operating system.
    #[error("it is looked for on {needed}, and this is {found}")]
    OtherSystem {
        /// The system that has it.
        needed: &'static str,
        /// This system.
        found: &'static str,
    },
    /// None of its libraries is in a folder that was searched.
    #[error("{} is in none of the {folders} folders that were searched", libraries.join(" or "))]
    NotFound {
        /// Names of files that would do.
        libraries: &'static [&'static str],
        /// How many folders were searched.
        folders: usize,
    },
    /// The file cannot be read.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The file is no library.
    #[error("{}: no ELF library: {why}", path.display())]
    NotAnElf {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        why: &'static str,
    },
    /// The file ends before what its headers announce.
    #[error("{}: cut off: {what} ends at byte {needed}, and the file has {found}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What lies beyond the end.
        what: &'static str,
        /// Bytes it would take.
        needed: u64,
        /// Bytes there are.
        found: u64,
    },
    /// The library is of another word size or byte order.
    #[error("{}: a {found} library, and this program is {needed}", path.display())]
    WrongClass {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// What this program is.
        needed: &'static str,
    },
    /// The library is for another processor.
    #[error("{}: for the processor with ELF number {found}, and this one has {needed}", path.display())]
    WrongMachine {
        /// The file.
        path: PathBuf,
        /// The number in the file.
        found: u16,
        /// The number of this processor.
        needed: u16,
    },
    /// The system would not load the library.
    #[error("{}: the system does not load it: {why}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The library lacks a function.
    #[error("{}: it has no function {symbol}", path.display())]
    MissingSymbol {
        /// The file.
        path: PathBuf,
        /// The function.
        symbol: &'static str,
    },
    /// The library is older than what yirage can use.
    #[error("{}: version {found}, and {needed} is the oldest that will do", path.display())]
    TooOld {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The oldest that will do.
        needed: String,
    },
    /// The library works and has no device to offer.
    #[error("{}: it works and finds no device{}", path.display(), hidden.as_deref().unwrap_or_default())]
    NoDevice {
        /// The file.
        path: PathBuf,
        /// The variable that hides devices, where one is set.
        hidden: Option<String>,
    },
    /// A call failed.
    #[error("{}: {call} failed with code {code}", path.display())]
    Code {
        /// The file.
        path: PathBuf,
        /// The call.
        call: &'static str,
        /// What it returned.
        code: i32,
    },
    /// An answer that makes no sense.
    #[error("{}: {call} answered {answer}", path.display())]
    Nonsense {
        /// The file.
        path: PathBuf,
        /// The call.
        call: &'static str,
        /// What it answered.
        answer: String,
    },
    /// The library did not answer in time.
    #[error("{}: it did not answer within {:.1} s", path.display(), after.as_secs_f64())]
    Deadline {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        after: Duration,
    },
    /// There was no thread to ask on, or it ended without an answer.
    #[error("{}: it could not be asked: {why}", path.display())]
    NotAsked {
        /// The file.
        path: PathBuf,
        /// What happened.
        why: String,
    },
}

impl ProbeError {
    /// What to do, where `install` says how the family's libraries come onto a machine.
    pub(crate) fn remedy(&self, install: &str) -> String {
        match self {
            ProbeError::OtherSystem { .. } => "choose another backend".into(),
            ProbeError::NotFound { .. } => install.into(),
            ProbeError::Unreadable { .. } => "check the file and its permissions".into(),
            ProbeError::NotAnElf { .. } | ProbeError::Truncated { .. } => {
                format!("replace the file: {install}")
            }
            ProbeError::WrongClass { .. } | ProbeError::WrongMachine { .. } => {
                "name the folder of the one for this processor in LD_LIBRARY_PATH".into()
            }
            ProbeError::Refused { .. } => "check that the libraries it needs are there (ldd shows them)".into(),
            ProbeError::MissingSymbol { .. } | ProbeError::TooOld { .. } => format!("update it: {install}"),
            ProbeError::NoDevice { hidden: Some(_), .. } => "unset the variable, or name devices that are there".into(),
            ProbeError::NoDevice { hidden: None, .. } => {
                "check that the device is plugged in, its driver is loaded, and this user may open its files in /dev"
                    .into()
            }
            ProbeError::Code { .. } => "check the maker's own tool; driver and libraries may not fit each other".into(),
            ProbeError::Nonsense { .. } => format!("the library is damaged or is not the maker's: {install}"),
            ProbeError::Deadline { .. } => "check the maker's own tool; a device may hang".into(),
            ProbeError::NotAsked { .. } => "give this process more threads or memory".into(),
        }
    }
}
