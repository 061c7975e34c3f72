//! What can keep an op from being timed.

use thiserror::Error;
use yirage_compile::CompileError;
use yirage_hal::HalError;
use yirage_ir::{BuildError, Format};
use yirage_registry::RegistryError;

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
    #[error("weights of {} cannot be made here: the format is only decoded", .0.info().name)]
    NoEncoder(Format),
    /// A weight of the graph has no values.
    #[error("the weight `{0}` of the op has no values")]
    NoWeight(String),
}
