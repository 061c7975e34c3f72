//! Why a graph cannot be run to be measured.

use thiserror::Error;
use yirage_hal::HalError;

/// Why nothing could be measured.
#[derive(Debug, Error)]
pub enum ExplainError {
    /// What the device said.
    #[error(transparent)]
    Device(#[from] HalError),
    /// The graph reads what cannot be made up.
    #[error("{what} cannot be made up: {why}")]
    NotMadeUp {
        /// What it reads.
        what: String,
        /// Why it cannot be, and what to do instead.
        why: String,
    },
}
