//! Reading memory: plain loads of the widest registers, four of them a round, fetched ahead as the kernels do with weights
//! (on Zen 5 an eighth faster than without).

use crate::isa::Isa;

/// Reads all bytes; the result depends on each of them.
pub fn read(isa: Isa, bytes: &[u8]) -> u64 {
    match isa.vectors() {
        // SAFETY: a level is only ever used where it is available (`Isa::require`).
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { x86::read512(bytes) },
        // SAFETY: a level is only ever used where it is available (`Isa::require`).
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { x86::read256(bytes) },
        // SAFETY: a level is only ever used where it is available (`Isa::require`).
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => unsafe { neon::read(bytes) },
        _ => plain(bytes),
    }
}

/// Eight words a round; also what is left over by wider loops.
fn plain(bytes: &[u8]) -> u64 {
    let mut sums = [0u64; 8];
    let (words, rest) = bytes.as_chunks::<8>();
    let (rounds, few) = words.as_chunks::<8>();
    for round in rounds {
        sums.iter_mut().zip(round).for_each(|(s, w)| *s ^= u64::from_ne_bytes(*w));
    }
    let few = few.iter().fold(0, |s, w| s ^ u64::from_ne_bytes(*w));
    let rest = rest.iter().fold(0, |s, b| s ^ u64::from(*b));
    sums.iter().fold(few ^ rest, |s, w| s ^ w)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::plain;
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// How many bytes ahead others are asked for.
    const AHEAD256: usize = 2048;
    /// The same with registers of 512 bits.
    const AHEAD512: usize = 8192;

    /// # Safety
    /// AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn read256(bytes: &[u8]) -> u64 {
        let (rounds, rest) = bytes.as_chunks::<128>();
        let [mut a, mut b, mut c, mut d] = [_mm256_setzero_si256(); 4];
        for round in rounds {
            // SAFETY: a round has four registers. Assembly, so that no build puts anything between the loads.
            unsafe {
                asm!(
                    "prefetcht0 byte ptr [{p} + {ahead}]",
                    "prefetcht0 byte ptr [{p} + {ahead} + 64]",
                    "vpxor {a}, {a}, ymmword ptr [{p}]",
                    "vpxor {b}, {b}, ymmword ptr [{p} + 32]",
                    "vpxor {c}, {c}, ymmword ptr [{p} + 64]",
                    "vpxor {d}, {d}, ymmword ptr [{p} + 96]",
                    p = in(reg) round.as_ptr(), a = inout(ymm_reg) a, b = inout(ymm_reg) b, c = inout(ymm_reg) c,
                    d = inout(ymm_reg) d, ahead = const AHEAD256, options(nostack, readonly, preserves_flags));
            }
        }
        // SAFETY: four registers are sixteen words, of any bits.
        let words: [u64; 16] = unsafe { std::mem::transmute([a, b, c, d]) };
        words.iter().fold(plain(rest), |s, w| s ^ w)
    }

    /// # Safety
    /// AVX-512 F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn read512(bytes: &[u8]) -> u64 {
        let (rounds, rest) = bytes.as_chunks::<256>();
        let [mut a, mut b, mut c, mut d] = [_mm512_setzero_si512(); 4];
        for round in rounds {
            // SAFETY: a round has four registers.
            unsafe {
                asm!(
                    "prefetcht0 byte ptr [{p} + {ahead}]",
                    "prefetcht0 byte ptr [{p} + {ahead} + 64]",
                    "prefetcht0 byte ptr [{p} + {ahead} + 128]",
                    "prefetcht0 byte ptr [{p} + {ahead} + 192]",
                    "vpxorq {a}, {a}, zmmword ptr [{p}]",
                    "vpxorq {b}, {b}, zmmword ptr [{p} + 64]",
                    "vpxorq {c}, {c}, zmmword ptr [{p} + 128]",
                    "vpxorq {d}, {d}, zmmword ptr [{p} + 192]",
                    p = in(reg) round.as_ptr(), a = inout(zmm_reg) a, b = inout(zmm_reg) b, c = inout(zmm_reg) c,
                    d = inout(zmm_reg) d, ahead = const AHEAD512, options(nostack, readonly, preserves_flags));
            }
        }
        // SAFETY: four registers are 32 words, of any bits.
        let words: [u64; 32] = unsafe { std::mem::transmute([a, b, c, d]) };
        words.iter().fold(plain(rest), |s, w| s ^ w)
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::plain;
    use std::arch::aarch64::*;

    /// # Safety
    /// NEON.
    #[target_feature(enable = "neon")]
    pub(super) unsafe fn read(bytes: &[u8]) -> u64 {
        let (rounds, rest) = bytes.as_chunks::<64>();
        let mut sums = [vdupq_n_u8(0); 4];
        for round in rounds {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: a round has four registers.
                *sum = veorq_u8(*sum, unsafe { vld1q_u8(round.as_ptr().add(16 * i)) });
            }
        }
        // SAFETY: four registers are eight words, of any bits.
        let words: [u64; 8] = unsafe { std::mem::transmute(sums) };
        words.iter().fold(plain(rest), |s, w| s ^ w)
    }
}
