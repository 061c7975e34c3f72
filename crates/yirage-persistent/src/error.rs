//! What can go wrong with a kernel, always with names, numbers and a remedy.

use std::path::PathBuf;
use thiserror::Error;
use yirage_compile::CompileError;
use yirage_engine::EngineError;
use yirage_engine::sampling::{ParamError, SampleError};
use yirage_hal::HalError;
use yirage_ir::BuildError;
use yirage_mmap::FileError;
use yirage_model::ModelError;
use yirage_packed::sealed::SealError;
use yirage_ranks::RankGroupError;

/// Why a kernel cannot be built, compiled, run, saved or loaded.
#[derive(Debug, Error)]
pub enum PersistentError {
    /// An option of the constructor.
    #[error("option `{option}` is {found}: {wanted}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        found: String,
        /// What is wanted.
        wanted: String,
    },
    /// A metadata tensor.
    #[error("metadata tensor `{name}`: {why}")]
    Meta {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A tensor of the kernel.
    #[error("tensor `{name}`: {why}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A tensor that is another kernel's.
    #[error("tensor {0} is not one of this kernel's: use the handles that its own methods gave")]
    UnknownTensor(u32),
    /// A layer that does not accept what it is given.
    #[error("{layer}: {why}")]
    Layer {
        /// The layer method.
        layer: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Ranks that are processes and do not compute the same.
    #[error("the ranks do not have the same kernel: {0}")]
    OtherRank(String),
    /// Ranks that are processes and have lost each other.
    #[error(transparent)]
    Ranks(#[from] RankGroupError),
    /// Something that this engine does not do.
    #[error("{what} is not supported: {why}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why not.
        why: String,
    },
    /// A request that cannot run.
    #[error("request {row}: {why}")]
    Request {
        /// Its row of the metadata.
        row: usize,
        /// What is wrong.
        why: String,
    },
    /// A saved kernel that was made of or for something else.
    #[error(
        "{}: `{field}` is `{found}` there, and `{wanted}` here; compile it again, or skip the validation if you know why",
        path.display()
    )]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// What differs.
        field: String,
        /// What the file says.
        found: String,
        /// What is here.
        wanted: String,
    },
    /// A saved kernel that is damaged, cut off or cannot be read.
    #[error("{}: {why}; compile it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A saved kernel that is not whole.
    #[error("{}: {source}; compile it again", path.display())]
    Seal {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: SealError,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The layers together are no graph.
    #[error("the layers do not make a graph: {0}")]
    Graph(#[from] BuildError),
    /// The graph has no plan.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A model's files.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The device.
    #[error(transparent)]
    Device(#[from] HalError),
    /// Sampling parameters out of range.
    #[error(transparent)]
    Sampling(#[from] ParamError),
    /// The device cannot sample.
    #[error(transparent)]
    Sample(#[from] SampleError),
}

impl PersistentError {
    /// Whether it is something that this engine does not do, rather than wrong input.
    pub fn is_unsupported(&self) -> bool {
        match self {
            PersistentError::Unsupported { .. } => true,
            PersistentError::Engine(e) => e.is_unsupported(),
            PersistentError::Model(ModelError::Unsupported { .. }) => true,
            PersistentError::Device(HalError::Unsupported { .. }) => true,
            _ => false,
        }
    }
}
