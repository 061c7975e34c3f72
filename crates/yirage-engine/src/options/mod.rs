//! What the owner of an engine decides. Options know nothing of those who follow them.

mod engine;
mod packed;
mod speculation;

pub use engine::{DEFAULT_CONTEXT, EngineOptions};
pub use packed::PackedOptions;
pub use speculation::{Speculation, SpeculationControl};
