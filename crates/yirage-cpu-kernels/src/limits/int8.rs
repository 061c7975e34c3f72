//! Products of 8-bit activations with codes, summed in 32 bits: the instructions that the kernels of `linear` use for
//! them, on registers only. Unpacking codes, loading activations and applying scales is what a kernel pays on top.

use super::Arithmetic;
#[cfg(target_arch = "x86_64")]
use super::matrix;
use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::linear::has_vex;

/// The loop for codes of `bits` bits.
pub fn peak(isa: Isa, bits: u32) -> Arithmetic {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Amx => Arithmetic {
            run: matrix::bytes,
            round_ops: matrix::ROUND_OPS,
            method: "tdpbssd of 16 tokens, 32 numbers and 16 rows; 16384 operations an instruction",
        },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Avx512Bf16 => Arithmetic {
            run: x86::dot512,
            round_ops: 128 * x86::SUMS_DOT as u64,
            method: "vpdpbusd of 512-bit registers; 128 operations an instruction",
        },
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni => Arithmetic {
            run: if has_vex() { x86::dot256::<true> } else { x86::dot256::<false> },
            round_ops: 64 * x86::SUMS_DOT as u64,
            method: "vpdpbusd of 256-bit registers; 64 operations an instruction",
        },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => x86::avx2(bits),
        #[cfg(target_arch = "aarch64")]
        Isa::NeonI8mm | Isa::NeonBf16 => Arithmetic {
            run: neon::squares,
            round_ops: 64 * neon::SUMS as u64,
            method: "usmmla of 128-bit registers; 64 operations an instruction",
        },
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => Arithmetic {
            run: neon::dot,
            round_ops: 32 * neon::SUMS as u64,
            method: "sdot of 128-bit registers; 32 operations an instruction",
        },
        _ => {
            let _ = bits; // whatever their width, plain products are all alike
            Arithmetic {
                run: plain,
                round_ops: 2 * 64,
                method: "products of integers in plain Rust; 2 operations each",
            }
        }
    }
}

/// # Safety
/// None is needed.
unsafe fn plain(rounds: u64) -> u64 {
    let (w, mut x) = ([3i16; 64], [1i16; 64]);
    let mut sums = [0i32; 64];
    for round in 0..rounds {
        x[(round % 64) as usize] ^= 2; // or all rounds would be one product
        for ((sum, w), x) in sums.iter_mut().zip(std::hint::black_box(&w)).zip(&x) {
            *sum = sum.wrapping_add(i32::from(*w) * i32::from(*x));
        }
    }
    sums.iter().fold(0i32, |a, b| a.wrapping_add(*b)) as u64
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Arithmetic;
    use crate::linear::{Vnni, groups_before_widening};
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// Sums of a round of the loops of dot products.
    pub(super) const SUMS_DOT: usize = 12;
    /// Sums of a round of the other loops: with their 16-bit parts they fill the registers.
    const SUMS: usize = 4;
    /// Products of 32 codes that go into each sum in a round.
    const GROUPS: usize = 8;

    /// AVX2 has no dot product: 16-bit sums of two products are summed as often as they cannot saturate, then widened.
    pub(super) fn avx2(bits: u32) -> Arithmetic {
        let of = |run, method| Arithmetic { run, round_ops: 64 * (SUMS * GROUPS) as u64, method };
        match groups_before_widening(bits) {
            8 => of(widened::<8>, "256-bit: 8 vpmaddubsw, 7 vpaddw, 1 vpmaddwd, 1 vpaddd for 512 operations"),
            4 => of(widened::<4>, "256-bit: 4 vpmaddubsw, 3 vpaddw, 1 vpmaddwd, 1 vpaddd for 256 operations"),
            2 => of(widened::<2>, "256-bit: 2 vpmaddubsw, 1 vpaddw, 1 vpmaddwd, 1 vpaddd for 128 operations"),
            _ => of(signed, "256-bit: 1 vpsignb, 1 vpmaddubsw, 1 vpmaddwd, 1 vpaddd for 64 operations"),
        }
    }

    /// `vpmaddubsw`, every time: as an intrinsic of equal operands it would run once.
    ///
    /// # Safety
    /// AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn products(w: __m256i, x: __m256i) -> __m256i {
        let out;
        // SAFETY: registers only.
        unsafe {
            asm!("vpmaddubsw {out}, {w}, {x}", out = lateout(ymm_reg) out, w = in(ymm_reg) w, x = in(ymm_reg) x,
                options(nomem, nostack, preserves_flags));
        }
        out
    }

    /// # Safety
    /// AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn widened<const EVERY: usize>(rounds: u64) -> u64 {
        let (w, x, ones) = (_mm256_set1_epi8(3), _mm256_set1_epi8(1), _mm256_set1_epi16(1));
        let mut sums = [_mm256_setzero_si256(); SUMS];
        for _ in 0..rounds {
            for _ in 0..GROUPS / EVERY {
                let mut parts = [_mm256_setzero_si256(); SUMS];
                for part in &mut parts {
                    // SAFETY: `widened` is promised AVX2.
                    *part = unsafe { products(w, x) };
                }
                for _ in 1..EVERY {
                    for part in &mut parts {
                        // SAFETY: `widened` is promised AVX2.
                        *part = _mm256_add_epi16(*part, unsafe { products(w, x) });
                    }
                }
                for (sum, part) in sums.iter_mut().zip(parts) {
                    *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(part, ones));
                }
            }
        }
        total(sums)
    }

    /// # Safety
    /// AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn signed(rounds: u64) -> u64 {
        let (w, x, ones) = (_mm256_set1_epi8(3), _mm256_set1_epi8(1), _mm256_set1_epi16(1));
        let mut sums = [_mm256_setzero_si256(); SUMS];
        for _ in 0..rounds * GROUPS as u64 {
            for sum in &mut sums {
                let turned: __m256i;
                // SAFETY: registers only.
                unsafe {
                    asm!("vpsignb {out}, {x}, {w}", out = lateout(ymm_reg) turned, w = in(ymm_reg) w,
                        x = in(ymm_reg) x, options(nomem, nostack, preserves_flags));
                }
                // SAFETY: `signed` is promised AVX2.
                let products = unsafe { products(w, turned) };
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(products, ones));
            }
        }
        total(sums)
    }

    /// # Safety
    /// AVX2 and the encoding of [`Vnni`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn dot256<const VEX: bool>(rounds: u64) -> u64 {
        let (w, x) = (_mm256_set1_epi8(3), _mm256_set1_epi8(1));
        let mut sums = [_mm256_setzero_si256(); SUMS_DOT];
        for _ in 0..rounds {
            for sum in &mut sums {
                // SAFETY: `dot256` is promised the instruction.
                *sum = unsafe { Vnni::<VEX>::dot(*sum, w, x) };
            }
        }
        total(sums)
    }

    fn total<const N: usize>(sums: [__m256i; N]) -> u64 {
        // SAFETY: registers of eight integers.
        let ints: [[i32; 8]; N] = sums.map(|sum| unsafe { std::mem::transmute(sum) });
        ints.as_flattened().iter().fold(0i32, |a, b| a.wrapping_add(*b)) as u64
    }

    /// # Safety
    /// AVX-512 with VNNI.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn dot512(rounds: u64) -> u64 {
        let (w, x) = (_mm512_set1_epi8(3), _mm512_set1_epi8(1));
        let mut sums = [_mm512_setzero_si512(); SUMS_DOT];
        for _ in 0..rounds {
            for sum in &mut sums {
                // SAFETY: registers only. Not `pure`: each of them shall run.
                unsafe {
                    asm!("vpdpbusd {s}, {w}, {x}", s = inout(zmm_reg) *sum, w = in(zmm_reg) w, x = in(zmm_reg) x,
                        options(nomem, nostack, preserves_flags));
                }
            }
        }
        // SAFETY: registers of sixteen integers.
        let ints: [i32; 16 * SUMS_DOT] = unsafe { std::mem::transmute(sums) };
        ints.iter().fold(0i32, |a, b| a.wrapping_add(*b)) as u64
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use crate::linear::dot::{MatrixDotProduct, Sdot, Usmmla, WordDotProduct};
    use std::arch::aarch64::*;

    /// Sums of a round.
    pub(super) const SUMS: usize = 12;

    /// # Safety
    /// NEON with the dot product.
    #[target_feature(enable = "neon,dotprod")]
    pub(super) unsafe fn dot(rounds: u64) -> u64 {
        let (w, x) = (vdupq_n_u8(3), vdupq_n_u8(1));
        let mut sums = [vdupq_n_s32(0); SUMS];
        for _ in 0..rounds {
            for sum in &mut sums {
                // SAFETY: `dot` is promised the instruction.
                *sum = unsafe { Sdot::dot::<0>(*sum, w, x) };
            }
        }
        total(sums)
    }

    /// # Safety
    /// NEON with i8mm.
    #[target_feature(enable = "neon,i8mm")]
    pub(super) unsafe fn squares(rounds: u64) -> u64 {
        let (w, x) = (vdupq_n_u8(3), vdupq_n_u8(1));
        let mut sums = [vdupq_n_s32(0); SUMS];
        for _ in 0..rounds {
            for sum in &mut sums {
                // SAFETY: `squares` is promised the instruction.
                *sum = unsafe { Usmmla::mul(*sum, w, x) };
            }
        }
        total(sums)
    }

    fn total(sums: [int32x4_t; SUMS]) -> u64 {
        // SAFETY: registers of four integers.
        let ints: [i32; 4 * SUMS] = unsafe { std::mem::transmute(sums) };
        ints.iter().fold(0i32, |a, b| a.wrapping_add(*b)) as u64
    }
}
