//! What can keep an op from being timed.

use thiserror::Error;
use yirage_compile::CompileError;
use yirage_hal::HalError;
use yirage_ir::{BuildError, Format};
use yirage_registry::RegistryError;
use yirage_tune::TuneError;

/// Why nothing was timed.
#[derive(Debug, Error)]
pub enum AdvisorError {
    /// The way to a device.
    #[error(transparent)]
    Backend(#[from] RegistryError),
    /// The device.
    #[error(transparent)]
    Device(#[from] HalError),
    /// The device has no kernel for the op.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The op's graph does not hold together.
    #[error(transparent)]
    Graph(#[from] BuildError),
    /// Weights of this format cannot be made from numbers.
    #[error("weights of {} cannot be made here: the format is only decoded; take a format that `yirage quantize` writes", .0.info().name)]
    NoEncoder(Format),
    /// Whoever watched it did not want it to go on.
    #[error("it was stopped")]
    Stopped,
    /// What else kept the op from being timed.
    #[error(transparent)]
    Run(TuneError),
}

impl From<TuneError> for AdvisorError {
    /// What a device or the compiler says is said so, whoever was asked.
    fn from(error: TuneError) -> AdvisorError {
        match error {
            TuneError::Device(error) => AdvisorError::Device(error),
            TuneError::Compile(error) => AdvisorError::Compile(error),
            other => AdvisorError::Run(other),
        }
    }
}
