//! The CPU as a device: plans are loaded and run on one pool of threads.
//!
//! Nothing here computes: kernels are bound in their own room and know nothing of this one.

mod backend;
mod capabilities;
mod info;
mod on_cpu;
mod probe;
mod processor_defaults;
mod profiled;
mod program;
mod trial;

pub use backend::{Cpu, CpuRank};
