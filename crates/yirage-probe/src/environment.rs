//! What a search reads of the machine: variables, the file system's root, the operating system. A value, so that tests
//! have machines of their own.

use crate::limits::DEADLINE;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a search reads of the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeEnvironment {
    variables: BTreeMap<String, OsString>,
    root: PathBuf,
    system: &'static str,
    deadline: Duration,
}

impl ProbeEnvironment {
    /// The machine and the environment of this process.
    pub fn of_this_process() -> ProbeEnvironment {
        // A variable whose name is no text is none that is asked for.
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        ProbeEnvironment {
            variables: variables.collect(),
            root: PathBuf::from("/"),
            system: std::env::consts::OS,
            deadline: DEADLINE,
        }
    }

    /// A machine whose file system begins at `root`, with these variables and nothing else.
    pub fn new<N: Into<String>, V: Into<OsString>>(
        root: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> ProbeEnvironment {
        ProbeEnvironment {
            variables: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            root: root.into(),
            system: std::env::consts::OS,
            deadline: DEADLINE,
        }
    }

    /// The same machine, where libraries have less time to answer.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> ProbeEnvironment {
        ProbeEnvironment { deadline, ..self }
    }

    /// How long a library may take to answer.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The operating system, as Rust names it.
    pub(crate) fn system(&self) -> &'static str {
        self.system
    }

    /// A variable, where it is set.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str)
    }

    /// An absolute path of the machine, below its root.
    pub(crate) fn path(&self, absolute: &Path) -> PathBuf {
        self.root.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }
}
