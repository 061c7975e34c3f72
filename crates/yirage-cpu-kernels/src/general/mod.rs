//! General kernels: on tensors of any rank, element type and strides.
//!
//! They know sizes, strides, element types and instruction-set levels. A result's bits depend on neither the level, nor
//! the strides, nor which part of the output a call makes. Deliberately unknown here: plans, buffers, threads.

mod bases;
mod chain;
mod concat;
pub mod contract;
mod convert;
mod copy;
mod elem;
mod fill;
mod fold;
mod gather;
pub mod hot;
mod hot_rows;
mod map;
mod nest;
mod operand;
mod partial;
mod program;
mod ranges;
mod reduce;
mod runs;
mod step;
mod strips;

pub use concat::concat;
pub use copy::copy;
pub use elem::{ComputeType, Elem, NoElem};
pub use fill::{fill, iota};
pub use gather::{Slices, gather};
pub use map::{BoundMap, map};
pub use operand::{LoopSizes, OperandError, StridedInput, StridedOutput, Strides};
pub use partial::PartialReduction;
pub use program::{ElementProgram, ProgramError};
pub use ranges::Ranges;
pub use reduce::{Reduction, reduce};
