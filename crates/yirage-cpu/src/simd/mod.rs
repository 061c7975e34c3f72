//! Sixteen f32 lanes at every instruction-set level, and the way a kernel written once is compiled for each of them.
//!
//! Every operation here is one IEEE 754 operation per lane (fused multiply-add included), so a kernel written on
//! [`Lanes`] gives the same bits at every level. Deliberately unknown here: tensors, tokens, threads.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod math;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;

use crate::isa::Isa;
use plain::Plain;

/// Lanes of a vector.
pub(crate) const LANES: usize = 16;

/// Sixteen f32 values. A type of this trait may be used only inside [`launch`], which enables its instructions; all of
/// its methods are then safe apart from the raw loads and stores, whose pointers must be valid for what they touch.
pub(crate) trait Lanes: Copy {
    /// Rows that a register tile of two vectors a row may hold without spilling.
    const ROWS: usize;
    /// The same value in all lanes.
    fn splat(x: f32) -> Self;
    /// Sixteen floats from anywhere.
    unsafe fn load(p: *const f32) -> Self;
    /// Sixteen floats to anywhere.
    unsafe fn store(self, p: *mut f32);
    /// Sixteen IEEE halves.
    unsafe fn load_f16(p: *const u16) -> Self;
    /// Thirty-two bf16 values: those at even places, then those at odd places.
    unsafe fn load_bf16_pairs(p: *const u16) -> (Self, Self);
    /// `self + b`.
    fn add(self, b: Self) -> Self;
    /// `self - b`.
    fn sub(self, b: Self) -> Self;
    /// `self * b`.
    fn mul(self, b: Self) -> Self;
    /// `self / b`.
    fn div(self, b: Self) -> Self;
    /// `self * b + c`, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;
    /// `self > b ? self : b`: b where either is NaN.
    fn max(self, b: Self) -> Self;
    /// `self < b ? self : b`: b where either is NaN.
    fn min(self, b: Self) -> Self;
    /// The nearest integer, ties to even.
    fn round(self) -> Self;
    /// `2^self` for integers from -126 to 127.
    fn pow2(self) -> Self;
    /// Without the sign.
    fn abs(self) -> Self;
    /// This magnitude with that sign.
    fn with_sign(self, sign: Self) -> Self;
    /// `self < b ? x : y`, lane by lane.
    fn if_less(self, b: Self, x: Self, y: Self) -> Self;
    /// Lanes `from..to` of this, the others from `other`; `from <= to <= 16`.
    fn keep(self, from: usize, to: usize, other: Self) -> Self;
    /// Whether any lane is greater than b's.
    fn any_greater(self, b: Self) -> bool;
    /// Sum of the lanes: i with i + 8, then i + 4, i + 2, i + 1.
    fn sum(self) -> f32;
    /// Largest lane; NaN lanes are passed over or not, as they come.
    fn largest(self) -> f32;

    /// Sixteen floats of a slice's chunk.
    #[inline(always)]
    fn of(x: &[f32; LANES]) -> Self {
        // SAFETY: the array has sixteen floats.
        unsafe { Self::load(x.as_ptr()) }
    }
    /// Up to sixteen floats, the rest `fill`.
    #[inline(always)]
    fn part(x: &[f32], fill: f32) -> Self {
        let mut all = [fill; LANES];
        all[..x.len()].copy_from_slice(x);
        Self::of(&all)
    }
    /// The lanes as an array.
    #[inline(always)]
    fn array(self) -> [f32; LANES] {
        let mut all = [0.0; LANES];
        // SAFETY: the array has sixteen floats.
        unsafe { self.store(all.as_mut_ptr()) };
        all
    }
}

/// A computation written once over [`Lanes`]. `run` and all that it calls with lanes must be `#[inline(always)]`, so
/// that it is compiled with the instructions of the level.
pub(crate) trait Kernel {
    /// What it returns.
    type Out;
    /// The computation.
    fn run<V: Lanes>(self) -> Self::Out;
}

/// Runs a kernel at a level; those without lanes of their own run the plain ones.
///
/// # Panics
/// If the processor lacks the level (a kernel must never run on instructions that are not there).
#[inline]
pub(crate) fn launch<K: Kernel>(isa: Isa, kernel: K) -> K::Out {
    assert!(isa.available(), "a kernel was called for {isa}, which this processor lacks");
    match isa {
        // SAFETY: the level is available.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { run_avx2(kernel) },
        // SAFETY: the level is available.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Avx512Bf16 => unsafe { run_avx512(kernel) },
        #[cfg(target_arch = "aarch64")]
        Isa::Neon | Isa::NeonI8mm | Isa::NeonBf16 => kernel.run::<neon::Neon>(),
        _ => kernel.run::<Plain>(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<avx2::Avx2>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl")]
unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<avx512::Avx512>()
}
