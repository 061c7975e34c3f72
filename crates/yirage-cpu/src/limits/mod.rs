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

pub(crate) use memory::read;

use crate::isa::Isa;
use yirage_hal::Limit;

/// A loop of multiplications in registers.
#[derive(Clone, Copy)]
pub(crate) struct Arithmetic {
    /// Runs so many rounds and gives a number that depends on all of them.
    ///
    /// # Safety
    /// The CPU has the instruction set that the loop was asked for.
    pub(crate) run: unsafe fn(u64) -> u64,
    /// Operations of a round: two for each multiplication with its addition.
    pub(crate) round_ops: u64,
    /// Instructions and what is counted.
    pub(crate) method: &'static str,
}

/// The loop for a ceiling of arithmetic on an instruction set; none where the set has no such instruction, and for
/// memory.
pub(crate) fn arithmetic(isa: Isa, limit: Limit) -> Option<Arithmetic> {
    match limit {
        Limit::MemoryRead => None,
        Limit::F32 => Some(f32::peak(isa)),
        Limit::Bf16 => bf16::peak(isa),
        Limit::Int8 { bits } => Some(int8::peak(isa, u32::from(bits))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_run_on_every_instruction_set_here() {
        for isa in crate::isa::levels_here() {
            for limit in Limit::ALL {
                let Some(peak) = arithmetic(isa, limit) else {
                    assert!(matches!(limit, Limit::MemoryRead | Limit::Bf16), "{isa} lacks {limit}");
                    continue;
                };
                // SAFETY: the instruction set is there.
                let once = |rounds| unsafe { (peak.run)(rounds) };
                assert_eq!(once(3), once(3), "{isa} {limit}");
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
