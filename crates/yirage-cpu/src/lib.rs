//! The CPU backend: worker pool, repacked weights, SIMD kernels chosen at run time.

pub mod activation;
#[cfg(target_arch = "x86_64")]
mod amx;
pub mod attention;
mod attention_plans;
mod bind;
mod cgroup;
mod device;
mod free_memory;
pub mod general;
pub mod isa;
mod kernels;
mod limits;
pub mod linear;
mod machine;
pub mod memory;
pub mod pack;
mod peers;
pub mod pool;
mod recurrent;
pub mod rows;
pub mod sample;
mod shared;
mod simd;
mod storage;
mod straggler;
mod walk;

pub use device::{Cpu, CpuRank};
pub use peers::CpuPeers;
