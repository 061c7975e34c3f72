//! What can go wrong in an engine, grouped by whose it is.

use crate::adapter_error::AdapterError;
use crate::embedded::EmbeddedError;
use crate::encoder_input::EncoderError;
use crate::forward_error::ForwardError;
use crate::kv::KvError;
use crate::memory::LoadBytes;
use crate::prefix_error::PrefixError;
use crate::sampling::{ParamError, SampleError};
use crate::scheduler::{AdmissionError, CommitError, ConfigError, StepInFlight};
use crate::vocabulary::VocabularyError;
use thiserror::Error;
use yirage_compile::CompileError;
use yirage_hal::HalError;
use yirage_model::ModelError;
use yirage_plancache::CacheError;

/// An error of the engine.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The model's files.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model cannot be compiled for the device.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The device.
    #[error(transparent)]
    Device(#[from] HalError),
    /// Limits that contradict each other.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The cache cannot be managed.
    #[error(transparent)]
    Cache(#[from] KvError),
    /// A request that cannot run.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// Sampling parameters out of range.
    #[error(transparent)]
    Sampling(#[from] ParamError),
    /// The device cannot sample.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// Adapters that cannot be, or what a request wants of them.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// A token id the model does not have.
    #[error(
        "token id {id} at place {at} of the prompt: the model has {vocabulary} tokens, counted from 0; encode with the model's own tokenizer"
    )]
    UnknownToken {
        /// The id.
        id: u32,
        /// Where it stands in the prompt.
        at: usize,
        /// Tokens of the model.
        vocabulary: u32,
    },
    /// Rows of embeddings that a prompt cannot have.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// What an encoder cannot compute.
    #[error(transparent)]
    Encoder(#[from] EncoderError),
    /// A forward pass that cannot be computed.
    #[error(transparent)]
    Forward(#[from] ForwardError),
    /// What a kept plan met.
    #[error(transparent)]
    Plans(#[from] CacheError),
    /// Hidden states are wanted of a model that was loaded without them.
    #[error("hidden states are asked for, and the engine was loaded without them; load it with the option `hidden`")]
    NoHiddenStates,
    /// A draft model that does not fit the model.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// An MTP head is asked for, and the checkpoint has none.
    #[error(
        "{architecture}: this checkpoint has no layer that predicts further tokens (multi-token prediction: one behind its \
         last, with `eh_proj`); use `--speculate lookup`, or a file whose conversion kept that layer"
    )]
    NoMtpHead {
        /// The model's.
        architecture: String,
    },
    /// A draft model beside an MTP head.
    #[error(
        "a draft model is given, and the checkpoint's own layer guesses already (`--speculate mtp`); leave the draft model \
         out, or use `--speculate draft`"
    )]
    TwoDrafters,
    /// A model that was given as a graph and is not one that the engine can run.
    #[error("the given model: {0}")]
    GraphModel(String),
    /// More memory is needed than there is.
    #[error(
        "the model would not fit: weights {} + cache {} + work space {} + tables {} = {} bytes, {available} available \
         ({limit}); choose a shorter context, smaller steps, fewer sequences, a 16-bit cache, or a smaller model or \
         quantisation",
        bytes.weights,
        bytes.cache,
        bytes.arena,
        bytes.tables,
        bytes.total()
    )]
    WouldNotFit {
        /// What it takes.
        bytes: LoadBytes,
        /// Bytes the device could give.
        available: u64,
        /// What limits them, in words.
        limit: String,
    },
    /// A budget for the cache in which not every part of it has a block.
    #[error("the cache may take {bytes} bytes, and this model's needs {least} at least; give it {} more", .least - .bytes)]
    CacheTooSmall {
        /// Bytes it may take.
        bytes: u64,
        /// Bytes it needs for a block of each part.
        least: u64,
    },
    /// A beginning of a sequence that is put into the cache.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// A step was scheduled while one was in flight: the engine's own mistake.
    #[error(transparent)]
    InFlight(#[from] StepInFlight),
    /// A commit that does not fit its step: the engine's own mistake.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl EngineError {
    /// Whether the device or the program lacks something the model needs (rather than the input being wrong).
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            EngineError::Model(ModelError::Unsupported { .. } | ModelError::UnsupportedFormat { .. })
                | EngineError::Compile(CompileError::NoKernel { .. } | CompileError::Unsupported { .. })
                | EngineError::Device(HalError::Unsupported { .. })
                | EngineError::Sample(SampleError::Compile(CompileError::NoKernel { .. }))
                | EngineError::NoMtpHead { .. }
        )
    }

    /// Whether memory does not suffice.
    pub fn would_not_fit(&self) -> bool {
        matches!(
            self,
            EngineError::WouldNotFit { .. }
                | EngineError::CacheTooSmall { .. }
                | EngineError::Cache(KvError::PoolSize { .. })
                | EngineError::Device(HalError::OutOfMemory { .. })
                | EngineError::Sample(SampleError::Device(HalError::OutOfMemory { .. }))
        )
    }
}
