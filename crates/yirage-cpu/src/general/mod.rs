//! General kernels: on tensors of any rank, element type and strides.
//!
//! They know sizes, strides, element types and instruction-set levels. A result's bits depend on neither the level, nor
//! the strides, nor which part of the output a call makes. Deliberately unknown here: plans, buffers, threads.

pub mod contract;
mod elem;
mod operand;

pub use elem::{Elem, Held, NoElem};
pub use operand::{Input, OperandError, Output, Sizes, Strides};
