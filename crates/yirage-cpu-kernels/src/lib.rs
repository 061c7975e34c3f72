//! The kernels of the CPU, written once for every level of instructions and chosen at run time: expressions, matmuls of packed
//! weights, attention, rows, sampling, and the memory that they work on.
//!
//! A kernel gets addresses and sizes and computes. Deliberately unknown here: devices, workers, graphs, steps.

pub mod activation;
#[cfg(target_arch = "x86_64")]
pub mod amx;
pub mod attention;
pub mod general;
pub mod isa;
pub mod limits;
pub mod linear;
pub mod memory;
pub mod pack;
pub mod recurrent;
pub mod rows;
pub mod sample;
pub mod simd;
