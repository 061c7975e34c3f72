//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod decisions;
mod filetests;
mod fusions;
mod layouts;
mod memory_plans;
mod recognise;
mod support;
mod tasks;
mod tiled;
