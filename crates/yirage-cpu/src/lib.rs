//! The CPU backend: worker pool, repacked weights, SIMD kernels chosen at run time.

pub mod activation;
#[cfg(target_arch = "x86_64")]
mod amx;
pub mod attention;
mod bind;
mod cgroup;
mod cuts;
mod device;
pub mod general;
mod held;
pub mod isa;
mod kernels;
mod limits;
pub mod linear;
mod machine;
pub mod memory;
pub mod pack;
pub mod pool;
mod room;
pub mod rows;
pub mod sample;
mod shared;
mod shed;
mod simd;
mod walk;

pub use device::Cpu;
