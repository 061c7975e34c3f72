//! Products of bf16 numbers, where an instruction multiplies them.

use super::Arithmetic;
#[cfg(target_arch = "x86_64")]
use super::matrix;
use crate::isa::Isa;

/// The loop; none where bf16 numbers have to be widened to f32 first.
pub fn peak(isa: Isa) -> Option<Arithmetic> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Amx => Some(Arithmetic {
            run: matrix::bf16,
            round_ops: matrix::ROUND_OPS,
            method: "tdpbf16ps of 16 tokens, 32 numbers and 16 rows; 16384 operations an instruction",
        }),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Bf16 => Some(Arithmetic {
            run: x86::dot,
            round_ops: 64 * x86::SUMS as u64,
            method: "vdpbf16ps of 512-bit registers; 64 operations an instruction",
        }),
        #[cfg(target_arch = "aarch64")]
        Isa::NeonBf16 => Some(Arithmetic {
            run: neon::squares,
            round_ops: 32 * neon::SUMS as u64,
            method: "bfmmla of 128-bit registers; 32 operations an instruction",
        }),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// Sums of a round.
    pub(super) const SUMS: usize = 12;

    /// # Safety
    /// AVX-512 with BF16.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn dot(rounds: u64) -> u64 {
        // 0.5 and 1 as pairs of bf16
        let (w, x) = (_mm512_set1_epi32(0x3f00_3f00), _mm512_set1_epi32(0x3f80_3f80));
        let mut sums = [_mm512_setzero_ps(); SUMS];
        for _ in 0..rounds {
            for sum in &mut sums {
                // SAFETY: registers only. Not `pure`: each of them shall run.
                unsafe {
                    asm!("vdpbf16ps {s}, {w}, {x}", s = inout(zmm_reg) *sum, w = in(zmm_reg) w, x = in(zmm_reg) x,
                        options(nomem, nostack, preserves_flags));
                }
            }
        }
        // SAFETY: registers of sixteen floats.
        let floats: [f32; 16 * SUMS] = unsafe { std::mem::transmute(sums) };
        floats.iter().sum::<f32>() as u64
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use crate::linear::dot::{Bfmmla, MatrixDotProduct};
    use std::arch::aarch64::*;

    /// Sums of a round.
    pub(super) const SUMS: usize = 12;

    /// # Safety
    /// NEON with BF16.
    #[target_feature(enable = "neon,bf16")]
    pub(super) unsafe fn squares(rounds: u64) -> u64 {
        let (w, x) = (vreinterpretq_u8_u16(vdupq_n_u16(0x3f00)), vreinterpretq_u8_u16(vdupq_n_u16(0x3f80)));
        let mut sums = [vdupq_n_f32(0.0); SUMS];
        for _ in 0..rounds {
            for sum in &mut sums {
                // SAFETY: `squares` is promised the instruction.
                *sum = unsafe { Bfmmla::mul(*sum, w, x) };
            }
        }
        // SAFETY: registers of four floats.
        let floats: [f32; 4 * SUMS] = unsafe { std::mem::transmute(sums) };
        floats.iter().sum::<f32>() as u64
    }
}
