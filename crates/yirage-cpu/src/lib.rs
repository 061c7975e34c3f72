//! The CPU backend: worker pool, repacked weights, SIMD kernels chosen at run time.

pub mod activation;
pub mod attention;
mod cgroup;
mod device;
pub mod general;
pub mod isa;
mod limits;
pub mod linear;
pub mod memory;
pub mod pack;
pub mod pool;
mod room;
pub mod rows;
pub mod sample;
mod simd;
mod walk;

pub use device::Cpu;
