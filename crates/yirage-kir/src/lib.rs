//! Compute kernels as data: one kernel language for every accelerator.
//!
//! A [`ComputeKernel`] is a loop nest over typed scalars: what one thread of a group does, with buffers, memory that a group
//! shares, loops, barriers and operations of a subgroup. It is written with a [`KernelWriter`], has a text form
//! ([`text`]), is checked ([`verify()`]), runs in an interpreter that finds races and reads beside memory
//! ([`interpret`]), and is printed as source for a device's compiler ([`render`]).
//!
//! Unknown here: ops, models, devices, and what a kernel is for.
#![forbid(unsafe_code)]

mod computation;
pub mod interpret;
mod kernel;
mod limits;
mod place;
pub mod render;
mod scalar;
pub mod text;
mod verify;
mod writer;

pub use computation::{BinaryFunction, Computation, SubgroupFunction, UnaryFunction};
pub use kernel::{BufferAccess, BufferOwnership, ComputeKernel, Instruction, KernelBuffer, SharedArray};
pub use limits::{MAX_BODY_DEPTH, MAX_REGISTERS, MAX_SHARED_BYTES, MAX_THREADS};
pub use place::{KernelMemory, Register, Variable};
pub use scalar::{ScalarConst, ScalarType};
pub use verify::{VerifyKernelError, verify};
pub use writer::KernelWriter;
