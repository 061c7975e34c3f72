//! What the tests of all crates share. Only `[dev-dependencies]` name this crate; nothing that is shipped is built from it.
//!
//! Helpers fail the test by panicking, as tests do.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // helpers of tests are tests

pub use yirage_ir::rng;
