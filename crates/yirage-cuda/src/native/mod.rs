//! Kernels that are written by hand in CUDA C++, each a text (`.cu`) and what stands before it for a shape.
//!
//! `device.cu` stands before all of them: whatever is an instruction of NVIDIA's own is there, so that an emulator needs to know
//! no more than that.

mod matmul;

pub use matmul::matmul;

/// The number of an architecture of NVIDIA's, as 90 of `sm_90a`.
pub(crate) fn capability(arch: &str) -> Option<u32> {
    arch.strip_prefix("sm_")?.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).parse().ok()
}

/// What every text calls.
const DEVICE: &str = include_str!("device.cu");
