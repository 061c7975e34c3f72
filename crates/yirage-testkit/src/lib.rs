//! What the tests of all crates share. Only `[dev-dependencies]` name this crate; nothing that is shipped is built from it.
//!
//! Models are made when a test first asks for them, from what lies in `fixtures/`, so that a clone alone runs every test
//! that needs one. Helpers fail the test by panicking, as tests do.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // helpers of tests are tests

pub mod absent;
pub mod adapters;
pub mod bedtime;
pub mod distribution;
pub mod encoders;
pub mod fixtures;
pub mod gguf;
pub mod json;
pub mod mtp;
mod recipe;
pub mod rows;
pub mod safetensors;
pub mod scratch;
pub mod skipped;
pub mod tiny;
pub mod vision;
pub mod weights;

pub use yirage_ir::rng;
