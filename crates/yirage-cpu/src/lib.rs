//! The CPU backend: worker pool, weights in its memory, and what binds the ops of plans to its kernels.

mod attention_plans;
mod bind;
mod cgroup;
mod device;
mod free_memory;
mod kernels;
mod machine;
mod peers;
pub mod pool;
mod shared;
mod storage;
mod straggler;
mod walk;

pub use device::{Cpu, CpuRank};
pub use peers::CpuPeers;
