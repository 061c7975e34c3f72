//! The engine: scheduler, KV manager, sampling, runner, request streams; the runner of encoders, which has none of
//! these; and a forward pass that is called as its caller likes ([`Forward`]).
//!
//! Scheduler, KV manager and stop matching are pure values: no device, clock or input; they are tested by simulation.
//! [`Engine`] joins them with a model on a device. Texts are the caller's: the engine speaks in token ids.
#![doc = include_str!("../../../docs/rust.md")]
#![forbid(unsafe_code)]

mod adapter_error;
mod block_positions;
mod embedded;
mod encoder;
mod encoder_input;
mod engine;
mod error;
mod forward;
mod forward_error;
mod graph_model;
pub mod limits;
mod load;
mod loaded_stage;
mod memory;
mod options;
mod pace;
mod packed;
mod plans;
mod prefix_error;
mod rank_division;
mod runner;
pub mod sampling;
pub mod speculate;
pub mod text;
mod variants;
mod vision;
mod vocabulary;

pub use adapter_error::AdapterError;
pub use embedded::{EmbeddedError, EmbeddedSpan, EmbeddingRows};
pub use encoder::{
    DecoderEncoder, DecoderTask, Embedding, Encoder, EncoderFacts, EncoderOptions, ScoreHead, is_embedding_decoder,
};
pub use encoder_input::{EncoderError, EncoderInput};
pub use engine::{CachedPrefix, Engine, Event, ModelFacts, Occupancy, Request, RestoredPrefix};
pub use error::EngineError;
pub use forward::{BesideLogits, Forward, ForwardOptions, ForwardRow, ForwardStep, Generate, NameDifferences};
pub use forward_error::ForwardError;
pub use graph_model::GraphModel;
pub use load::{LoadProgressFn, PlannedStep, plan_step};
pub use memory::LoadBytes;
pub use options::{
    AdapterScale, CacheSize, DEFAULT_CONTEXT, EngineAdapter, EngineOptions, PackedOptions, Speculation,
    SpeculationControl, Tuning, plan_folder,
};
pub use packed::Notice;
pub use plans::PlanCounts;
pub use prefix_error::PrefixError;
pub use rank_division::{IndivisibleModel, RankDivision};
pub use variants::{ChosenVariant, VariantOrigin, VariantTiming};
pub use vision::{Picture, VisionTower};
pub use vocabulary::VocabularyError;
pub use yirage_scheduler::{self as scheduler, kv};
