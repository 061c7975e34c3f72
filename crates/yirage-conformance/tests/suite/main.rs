//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod backends;
mod bound;
mod contract;
mod copies;
mod epilogues;
mod mutated_plans;
mod onnx;
mod onnx_support;
mod operands;
mod random;
mod refused_operands;
mod tiled;
mod views;
mod vm;
