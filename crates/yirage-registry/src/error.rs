//! Why a name leads to no backend.

use thiserror::Error;
use yirage_hal::Unavailable;

/// Why a name leads to no backend.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RegistryError {
    /// There is no such name.
    #[error("the backend {name:?} is unknown: use one of {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Every name that there is.
        known: Vec<&'static str>,
    },
    /// The backend cannot be used here: which one, why, what to do, and those that could be used instead.
    #[error("the backend {} is not available: {}; {}; available here: {}", .0.backend, .0.why, .0.remedy, list(.1))]
    Unavailable(Unavailable, Vec<&'static str>),
    /// The backend's devices cannot compute a model together with devices of other processes.
    #[error("a device of {backend} cannot be one of several ranks of a model: use one of {}", able.join(", "))]
    NoRank {
        /// The backend.
        backend: &'static str,
        /// Those whose devices can.
        able: Vec<&'static str>,
    },
    /// No backend has a device here.
    #[error("no backend is available: {}", reasons.join("; "))]
    None {
        /// Each backend of this build with its reason.
        reasons: Vec<String>,
    },
}

fn list(names: &[&'static str]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
