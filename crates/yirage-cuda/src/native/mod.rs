//! Kernels that are written by hand in CUDA C++, each a text (`.cu`) and what stands before it for a shape.
//!
//! `device.cu` stands before all of them: whatever is an instruction of NVIDIA's own is there, so that an emulator needs to know
//! no more than that.

mod attention;
mod form;
mod matmul;

pub use attention::attention;
pub(crate) use form::as_function;
pub use matmul::matmul;

use yirage_kernels::RowCount;

/// The number of an architecture of NVIDIA's, as 90 of `sm_90a`.
pub(crate) fn capability(arch: &str) -> Option<u32> {
    arch.strip_prefix("sm_")?.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).parse().ok()
}

/// What every text calls.
pub(crate) const DEVICE: &str = include_str!("device.cu");
/// What runs the functions of a step's kernels as one kernel.
pub(crate) const PERSISTENT: &str = include_str!("persistent.cu");
/// Floats in terms of bf16.
const TERMS: &str = include_str!("terms.cu");

/// The first architecture that has what the texts call: `mma` of bf16, and copies past registers.
const FIRST: u32 = 80;

/// Whether devices of an architecture have what the texts call.
pub(crate) fn has_instructions(arch: &str) -> bool {
    capability(arch).is_some_and(|number| number >= FIRST)
}

/// Where a kernel finds a size: as a number, or in the block of step sizes.
fn count_of(size: RowCount) -> String {
    match size {
        RowCount::Fixed(count) => format!("{count}u"),
        RowCount::Size(word) => format!("sizes[{word}]"),
    }
}

/// The same in a kernel's name.
fn named(size: RowCount) -> String {
    match size {
        RowCount::Fixed(count) => format!("r{count}"),
        RowCount::Size(word) => format!("s{word}"),
    }
}

/// The parameter that the block of step sizes is, where it is read.
fn sizes_parameter(sizes: &[RowCount]) -> &'static str {
    let is_read = sizes.iter().any(|size| matches!(size, RowCount::Size(_)));
    if is_read { "const unsigned int* sizes, " } else { "" }
}
