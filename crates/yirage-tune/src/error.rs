//! What can keep a graph from being timed or searched.

use std::path::PathBuf;
use thiserror::Error;
use yirage_compile::CompileError;
use yirage_compile::search::SearchError;
use yirage_hal::HalError;
use yirage_ir::Type;
use yirage_mmap::FileError;

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
    #[error("the weight `{0}` of the graph has no values")]
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
    /// A file of the cache could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The cache's folder could not be written to.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl TuneError {
    pub(crate) fn io(doing: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> TuneError {
        let path = path.to_path_buf();
        move |source| TuneError::Io { doing, path, source }
    }
}
