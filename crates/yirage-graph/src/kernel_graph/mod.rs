//! The builder: operations by the names and arguments of Mirage's `KNGraph` (Wu et al., OSDI 2025), and few of our own.
//!
//! Each operation becomes general ops of the IR, or the very form of general ops that a named op has (`Op::lower`), which
//! the compiler recognises. Nothing is computed here, and no device is known. Graphs of a thread block are made of the same
//! operations (`threadblock/`).

mod attention;
mod builder;
mod elementwise;
mod error;
mod matmul;
mod named;
mod norms;
mod shapes;
mod threadblock;

pub use builder::{KernelGraph, MAX_INPUT_RANK, axis};
pub use error::GraphError;
pub use named::OpAttribute;
pub use norms::NORM_EPS;
pub use shapes::SplitBy;
pub use threadblock::{BlockGraph, BlockValue, ForloopAccum};
