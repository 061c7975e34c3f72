//! What can keep a graph from being timed or searched.

use thiserror::Error;
use yirage_compile::CompileError;
use yirage_hal::HalError;
use yirage_ir::Type;
use yirage_search::SearchError;

/// Why nothing was timed, searched or kept.
#[derive(Debug, Error)]
pub enum TuneError {
    /// The device.
    #[error(transparent)]
    Device(#[from] HalError),
    /// The target has no plan for the graph.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The graph cannot be searched.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// A weight of the graph has no values.
    #[error("the weight `{0}` of the graph has no values; give it some")]
    NoWeight(String),
    /// An input of which no values can be made.
    #[error("the input `{name}` of type {ty} cannot be made up: {why}")]
    NoValues {
        /// The input.
        name: String,
        /// Its type.
        ty: Type,
        /// Why it cannot be.
        why: String,
    },
    /// An option that no search can follow.
    #[error("option `{option}`: {why}")]
    Option {
        /// The option.
        option: &'static str,
        /// What is wrong with its value, and what is taken.
        why: String,
    },
}
