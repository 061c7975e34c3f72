//! The CPU as a device: glue between plans and kernels.
//!
//! One pool walks the phases of a plan; within a phase each worker runs its share of every kernel. Nothing here
//! computes: kernels live beside this module and know neither plans nor this glue.

mod attend;
mod cpu;
mod experts;
mod gather;
mod operand;
mod probe;
mod products;
mod program;
mod row_op;
mod rows_kernel;
mod rules;
mod sample;
mod state;
mod weight;

pub use cpu::Cpu;
