//! The engine: requests in, tokens out, one step after another.

mod adapters;
mod admission;
mod bound_kv_cache;
mod cache_salt;
mod cached_prefix;
mod choose;
mod core;
mod event;
mod facts;
mod guesses;
mod host_choice;
mod launch;
mod load;
mod prompt_rows;
mod report;
mod request;
mod request_adapters;
mod request_state;
mod restraint;
mod statistics;
mod step;
mod submitted_step;
mod verify;

pub use self::core::Engine;
pub use cached_prefix::{CachedPrefix, RestoredPrefix};
pub use event::Event;
pub use facts::ModelFacts;
pub use request::Request;
pub use statistics::Occupancy;
