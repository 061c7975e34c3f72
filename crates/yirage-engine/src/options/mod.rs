//! What the owner of an engine decides. Options know nothing of those who follow them.

mod adapter;
mod cache;
mod engine;
mod packed;
mod speculation;
mod tuning;

pub use adapter::{AdapterScale, EngineAdapter};
pub(crate) use adapter::{check_adapters, check_scale};
pub use cache::CacheSize;
pub use engine::{DEFAULT_CONTEXT, EngineOptions};
pub use packed::{PackedOptions, plan_folder};
pub use speculation::{Speculation, SpeculationControl};
pub use tuning::Tuning;
