//! f32 multiply-adds: twelve sums that do not wait for each other, which is what keeps two units of four cycles busy.

use super::Arithmetic;
use crate::isa::Isa;

/// Sums of a round.
const SUMS: usize = 12;

/// The loop.
pub fn peak(isa: Isa) -> Arithmetic {
    let of = |run, lanes: u64, method| Arithmetic { run, round_ops: 2 * lanes * SUMS as u64, method };
    match isa.vectors() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => of(x86::fma512, 16, "vfmadd of 512-bit registers; 32 operations an instruction"),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => of(x86::fma256, 8, "vfmadd of 256-bit registers; 16 operations an instruction"),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => of(neon::fma, 4, "fmla of 128-bit registers; 8 operations an instruction"),
        _ => of(plain, 4, "multiplication and addition in plain Rust; 2 operations a pair"),
    }
}

/// # Safety
/// None is needed.
unsafe fn plain(rounds: u64) -> u64 {
    let (b, c) = (std::hint::black_box([0.5f32; 4]), std::hint::black_box([1f32; 4]));
    let mut sums = [[0f32; 4]; SUMS];
    for _ in 0..rounds {
        for sum in &mut sums {
            for i in 0..4 {
                sum[i] = sum[i] * b[i] + c[i];
            }
        }
    }
    sums.as_flattened().iter().sum::<f32>() as u64
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::SUMS;
    use std::arch::x86_64::*;
    use std::hint::black_box;

    /// # Safety
    /// FMA and AVX2.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn fma256(rounds: u64) -> u64 {
        let (b, c) = (_mm256_set1_ps(black_box(0.5)), _mm256_set1_ps(black_box(1.0)));
        let mut sums = [_mm256_setzero_ps(); SUMS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, b, c);
            }
        }
        // SAFETY: registers of eight floats.
        let floats: [f32; 8 * SUMS] = unsafe { std::mem::transmute(sums) };
        floats.iter().sum::<f32>() as u64
    }

    /// # Safety
    /// AVX-512 F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn fma512(rounds: u64) -> u64 {
        let (b, c) = (_mm512_set1_ps(black_box(0.5)), _mm512_set1_ps(black_box(1.0)));
        let mut sums = [_mm512_setzero_ps(); SUMS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, b, c);
            }
        }
        // SAFETY: registers of sixteen floats.
        let floats: [f32; 16 * SUMS] = unsafe { std::mem::transmute(sums) };
        floats.iter().sum::<f32>() as u64
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::SUMS;
    use std::arch::aarch64::*;
    use std::hint::black_box;

    /// # Safety
    /// NEON.
    #[target_feature(enable = "neon")]
    pub(super) unsafe fn fma(rounds: u64) -> u64 {
        let (b, c) = (vdupq_n_f32(black_box(0.5)), vdupq_n_f32(black_box(1.0)));
        // The product is added to the sum: it starts small and stays exact enough for any number of rounds.
        let mut sums = [vdupq_n_f32(0.0); SUMS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = vfmaq_f32(c, *sum, b);
            }
        }
        // SAFETY: registers of four floats.
        let floats: [f32; 4 * SUMS] = unsafe { std::mem::transmute(sums) };
        floats.iter().sum::<f32>() as u64
    }
}
