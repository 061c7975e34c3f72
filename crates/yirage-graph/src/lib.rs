//! Kernel graphs as people write them: a builder with the operations of Mirage's `KNGraph`, graphs as JSON, pictures of
//! graphs, the graphs that Mirage's benchmarks time, and the arrays of .npy files that graphs are called with.
//!
//! What is built here is a plain [`yirage_ir::Graph`], the same as a model's. This crate deliberately knows no file, no
//! device, no compiler and no kernel: texts and bytes come in, values and texts go out.
#![forbid(unsafe_code)]

pub mod json;
pub mod kernel_graph;
pub mod npy;
pub mod picture;
pub mod workloads;

pub use json::{JsonError, from_json, to_json};
pub use kernel_graph::{
    BlockGraph, BlockValue, ForloopAccum, GraphError, KernelGraph, NORM_EPS, OpAttribute, SplitBy, axis,
};
pub use npy::{Npy, NpyError};
pub use picture::{dot, svg};
pub use workloads::{Parameters, Scale, Workload};
