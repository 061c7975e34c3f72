//! Kernels for every accelerator: nodes of a plan as compute kernels.
//!
//! Each op has one file that says what its kernels take ([`OpRule`](yirage_plan::rules::OpRule)) and writes them for a node,
//! with its shapes and strides as constants: what changes from step to step, a kernel reads in the block of step sizes. What
//! has a general form and no kernel of its own is run by that. [`KernelLibrary`] is all of them as the library of a device.
//!
//! The order of additions is a property of the op and of the weight's shape: never of the batch, the grid or the device.
//! Unknown here: any vendor, and how a kernel becomes code.
#![forbid(unsafe_code)]

mod double;
mod double_log;
#[cfg(test)]
mod double_tests;
mod elements;
mod exact_division;
mod expression;
mod format;
#[cfg(test)]
mod function_tests;
mod grid;
mod library;
mod math;
mod native;
mod node_kernel;
mod op;
mod scope;
mod strided_index;
mod target;
mod wide;
mod workspace;

pub use library::KernelLibrary;
pub use native::{
    AttentionKernel, ModuleKernel, ModuleTextError, NativeAttention, NativeKernel, NativeProducts, PagedAttentionShape,
    ProductKernel, ProductShape, RowCount, module_kernels,
};
pub use target::target;
