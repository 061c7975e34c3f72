//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod chain;
mod expressions;
mod graph;
mod hostile;
mod layouts;
mod lower;
mod quant_golden;
mod structural_hash;
mod tiled;
mod views;
