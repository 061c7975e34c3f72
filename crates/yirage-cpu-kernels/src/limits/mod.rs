//! Loops that do nothing but what a kernel cannot do without: reading memory, multiplying. Their speed is the ceiling of
//! every kernel's.
//!
//! One file a ceiling, one loop an instruction set. Knows nothing of threads, clocks and devices.

mod bf16;
mod f32;
mod int8;
#[cfg(target_arch = "x86_64")]
mod matrix;
mod memory;

pub use bf16::peak as bf16;
pub use f32::peak as f32;
pub use int8::peak as int8;
pub use memory::read;

/// A loop of multiplications in registers.
#[derive(Clone, Copy)]
pub struct Arithmetic {
    /// Runs so many rounds and gives a number that depends on all of them.
    ///
    /// # Safety
    /// The CPU has the instruction set that the loop was asked for.
    pub run: unsafe fn(u64) -> u64,
    /// Operations of a round: two for each multiplication with its addition.
    pub round_ops: u64,
    /// Instructions and what is counted.
    pub method: &'static str,
}
