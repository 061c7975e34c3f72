//! Load for a server of language models: requests at random times from a seed, what a client sees of each answer, and
//! statistics under the names of vLLM's `bench serve`.
//!
//! A [`LoadRunner`] sends [`LoadRequest`]s to a [`LoadTarget`], which is a server, as a [`ArrivalPattern`] says, and gives what was seen of each
//! ([`RequestMetrics`]). A [`Summary`] sums that up. Time is measured here, at the client: from before the connection is opened.
//!
//! Unknown here: models, tokenizers and engines. What a token is, the server says.
#![forbid(unsafe_code)]

mod answer;
mod arrivals;
mod http;
mod plot;
mod prompts;
mod random;
mod run;
mod statistics;
mod summary;
mod target;

pub use answer::RequestMetrics;
pub use arrivals::{ArrivalPattern, Schedule};
pub use plot::{Point, plot};
pub use prompts::{PromptLengths, RandomPrompts};
pub use run::{LoadRun, LoadRunner};
pub use statistics::{Statistics, percentile};
pub use summary::{Metric, Objective, Summary};
pub use target::{CompletionApi, LoadPrompt, LoadRequest, LoadTarget};

use std::io;
use thiserror::Error;

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The address is none that is understood.
    #[error("{url:?}: {why}")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A header that cannot be sent.
    #[error("the header {name:?} cannot be sent: a name and a value of visible characters are wanted")]
    Header {
        /// Its name.
        name: String,
    },
    /// The server did not answer a question about itself.
    #[error("{path}: {why}")]
    Asked {
        /// What was asked for.
        path: String,
        /// What came instead.
        why: String,
    },
    /// A load that makes no sense.
    #[error("{what} has to be {expected}, not {given}")]
    Load {
        /// Which number.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        given: String,
    },
    /// No request of those sent first was answered.
    #[error("{count} of {of} requests to warm up failed, the first one so: {why}")]
    WarmUp {
        /// How many failed.
        count: usize,
        /// How many there were.
        of: usize,
        /// What the first said.
        why: String,
    },
    /// The system gives no threads.
    #[error("no threads for connections: {0}")]
    Threads(#[from] io::Error),
}
