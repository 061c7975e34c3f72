//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod json;
mod named;
mod npy;
mod operations;
mod picture;
mod refusals;
mod support;
mod threadblock;
mod workloads;
