//! What is wrong with adapters, or with what a request wants of them.

use crate::limits::MAX_ADAPTERS;
use thiserror::Error;

/// An error about adapters.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum AdapterError {
    /// A name that none has.
    #[error("no adapter is called {name:?}; there are {}", listed(known))]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// One name for two of them, or named twice by a request.
    #[error("the adapter {name:?} is named twice; name each once")]
    Twice {
        /// The name.
        name: String,
    },
    /// A scale that is no number.
    #[error("the scale of the adapter {name:?} is {scale}; it must be a finite number")]
    Scale {
        /// The adapter.
        name: String,
        /// The scale.
        scale: f32,
    },
    /// More than are supported.
    #[error("{count} adapters; at most {MAX_ADAPTERS} are supported beside a model")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// An adapter cannot go while it is used.
    #[error("the adapter {name:?} is used by {requests} requests that run; try again when they have ended")]
    InUse {
        /// The adapter.
        name: String,
        /// Requests that use it.
        requests: usize,
    },
    /// A step is on the device.
    #[error("a step is being computed; try again")]
    StepInFlight,
    /// What a model of several ranks cannot have.
    #[error(
        "adapters beside a model that {ranks} ranks compute are not supported; merge them into the weights: --lora-merge"
    )]
    Ranks {
        /// How many there are.
        ranks: u32,
    },
}

fn listed(known: &[String]) -> String {
    if known.is_empty() { "none".into() } else { known.join(", ") }
}
