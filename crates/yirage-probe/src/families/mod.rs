//! One file a family: its libraries, its calls, and what each of its architectures can compute with.
//!
//! Functions and numbers are those of the makers' public headers. They have been asked of libraries that tests build, and
//! of no hardware yet.

mod ascend;
mod cambricon;
mod corex;
mod cuda;
mod hip;
mod maca;
mod metal;
mod musa;
mod vulkan;

pub use ascend::{ASCEND, HCCL, NNOPBASE, OPAPI};
pub use cambricon::{CAMBRICON, CNCL, CNNL, CNRT};
pub use corex::{COREX, COREX_NCCL, COREX_NVRTC};
pub use cuda::{CUDA, NCCL, NVRTC};
pub use hip::{HIP, HIPRTC, HYGON, HYGON_HIPRTC, HYGON_RCCL, RCCL};
pub use maca::{MACA, MACA_MCCL, MCRTC};
pub use metal::METAL;
pub use musa::{MTRTC, MUSA, MUSA_MCCL};
pub use vulkan::VULKAN;

use crate::family::Family;

/// Every family.
pub const ALL: [&Family; 10] = [&CUDA, &ASCEND, &CAMBRICON, &HYGON, &HIP, &MACA, &MUSA, &COREX, &METAL, &VULKAN];
