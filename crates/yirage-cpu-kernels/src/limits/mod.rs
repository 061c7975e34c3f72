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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_run_on_every_instruction_set_here() {
        for isa in crate::isa::levels_here() {
            for peak in [Some(f32(isa)), bf16(isa), Some(int8(isa, 4)), Some(int8(isa, 8))].into_iter().flatten() {
                // SAFETY: the instruction set is there.
                let once = |rounds| unsafe { (peak.run)(rounds) };
                assert_eq!(once(3), once(3), "{isa} {}", peak.method);
                assert!(peak.round_ops > 0 && !peak.method.is_empty());
            }
        }
    }

    #[test]
    fn every_byte_is_read() {
        for isa in crate::isa::levels_here() {
            let mut bytes = vec![0u8; 1024 + 3];
            let base = read(isa, &bytes);
            for at in 0..bytes.len() {
                bytes[at] = 1;
                assert_ne!(read(isa, &bytes), base, "{isa}: byte {at} makes no difference");
                bytes[at] = 0;
            }
        }
    }
}
