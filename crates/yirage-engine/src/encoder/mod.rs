//! Encoders: inputs in, vectors or scores of whole texts out.
//!
//! An input's tokens see each other and nothing of the inputs beside them. Nothing is kept from step to step, so there is
//! no scheduler and no cache. An input's result is the same bytes whatever it is computed with.

mod batches;
mod core;
mod decoder;
mod decoder_task;
mod load;
mod options;
mod pool;

pub use self::core::{Encoder, EncoderFacts};
pub use decoder::DecoderEncoder;
pub use decoder_task::{DecoderTask, ScoreHead, is_embedding_decoder};
pub use options::EncoderOptions;
pub use pool::Embedding;
