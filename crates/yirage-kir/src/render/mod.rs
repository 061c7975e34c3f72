//! Kernels as source for a device's compiler, one file a language.

mod c;
mod c_preludes;
mod wgsl;

pub use c::{CDialect, group_memory_bytes};
pub use wgsl::{is_read_only, wgsl};
