//! The tests that hold parsers to their budgets of memory: a program of their own, for its allocator counts.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod alloc;
mod config_files;
#[path = "../suite/corpus.rs"]
mod corpus;
mod gguf_hostile;
mod safetensors_files;
