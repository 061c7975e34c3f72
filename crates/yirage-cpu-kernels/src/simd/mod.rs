//! Sixteen f32 lanes at every instruction-set level, and the way a kernel written once is compiled for each of them.
//!
//! Every operation here is one IEEE 754 operation per lane (fused multiply-add included), so a kernel written on
//! [`Lanes`] gives the same bits at every level. Deliberately unknown here: tensors, tokens, threads.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod bytes;
pub mod math;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;
pub mod power;
mod words;

use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub use bytes::ByteLanes;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
pub(crate) use plain::Plain;
pub use words::BitLanes;

/// Lanes of a vector.
pub const LANES: usize = 16;

/// Sixteen f32 values. A type of this trait may be used only inside [`launch`], or a function that enables its instructions.
///
/// # Safety
/// Of the loads and stores, and of `turn`: the addresses have what the method says that it touches.
#[expect(clippy::missing_safety_doc, reason = "what its own section says is of each of them")]
pub trait Lanes: BitLanes + ByteLanes {
    /// Rows that a register tile of two vectors a row may hold without spilling.
    const ROWS: usize;
    /// Whether the registers hold twelve rows of two vectors of sums and not only six of one.
    const WIDE: bool;
    /// The same value in all lanes.
    fn splat(x: f32) -> Self;
    /// Sixteen floats from anywhere.
    unsafe fn load(p: *const f32) -> Self;
    /// Sixteen floats to anywhere.
    unsafe fn store(self, p: *mut f32);
    /// Sixteen floats to an address that is a multiple of 64 bytes, past the caches where there is such a store;
    /// [`stream_fence`] comes before anyone else is told of them.
    unsafe fn stream(self, p: *mut f32);
    /// Sixteen IEEE halves.
    unsafe fn load_f16(p: *const u16) -> Self;
    /// Four columns of sixteen rows: value j of each row is vector j.
    unsafe fn turn(rows: &[*const f32; LANES]) -> [Self; 4];
    /// Sixteen signed bytes.
    unsafe fn load_i8(p: *const i8) -> Self;
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
    /// `self 2^n`, rounded once, for whole n from -252 to 254 and normal numbers from a half to two.
    #[inline(always)]
    fn scale(self, n: Self) -> Self {
        // Two factors, since 2^n itself may leave the normal range at both ends. The first product is exact.
        let half = n.mul(Self::splat(0.5)).round();
        self.mul(half.pow2()).mul(n.sub(half).pow2())
    }
    /// The square root.
    fn sqrt(self) -> Self;
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
    /// Whether any lane is NaN.
    fn any_nan(self) -> bool;
    /// Sum of the lanes: i with i + 8, then i + 4, i + 2, i + 1.
    fn sum(self) -> f32;
    /// Largest lane; NaN lanes are passed over or not, as they come.
    fn largest(self) -> f32;
    /// A kernel as a function of its own, from within one of the same level. For each of many ways of which a call takes one:
    /// all of them in one function are compiled in a time that grows faster than their number.
    ///
    /// # Safety
    /// As [`WithLanes::run`].
    unsafe fn apart<K: WithLanes>(kernel: K) -> K::Out;

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

/// Makes what [`Lanes::stream`] has stored visible before all that is stored after it.
pub fn stream_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// A computation written once over [`Lanes`]. `run` and all that it calls with lanes must be `#[inline(always)]`, so
/// that it is compiled with the instructions of the level.
///
/// A kernel holds addresses, which nothing but the function that makes it can vouch for: to run one is unsafe, and its type
/// says which function's promise it needs. A kernel of slices alone says nothing, and needs nothing.
pub trait WithLanes {
    /// What it returns.
    type Out;
    /// The computation.
    ///
    /// # Safety
    /// The processor has the instructions of `V`, which [`launch`] checks, and what the kernel's type says that it needs.
    unsafe fn run<V: Lanes>(self) -> Self::Out;
}

/// Runs a kernel at a level; those without lanes of their own run the plain ones.
///
/// # Safety
/// What the kernel's type says that it needs.
///
/// # Panics
/// If the processor lacks the level (a kernel must never run on instructions that are not there).
#[inline]
pub unsafe fn launch<K: WithLanes>(isa: Isa, kernel: K) -> K::Out {
    assert!(isa.available(), "a kernel was called for {isa}, which this processor lacks");
    // SAFETY: `Isa::available` has just said that the processor has the level; what the kernel needs is promised to `launch`.
    unsafe {
        match isa.vectors() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => run_avx2(kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => run_avx512(kernel),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => run_everywhere::<Neon, K>(kernel),
            _ => run_everywhere::<Plain, K>(kernel),
        }
    }
}

/// A kernel at a level whose instructions every processor of the target has.
///
/// # Safety
/// What the kernel's type says that it needs.
#[inline(never)]
unsafe fn run_everywhere<V: Lanes, K: WithLanes>(kernel: K) -> K::Out {
    // SAFETY: as `run_everywhere` is promised; the instructions are there.
    unsafe { kernel.run::<V>() }
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn run_avx2<K: WithLanes>(kernel: K) -> K::Out {
    // SAFETY: `WithLanes::run` wants the instructions that this function enables, and what `launch` is promised.
    unsafe { kernel.run::<Avx2>() }
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl")]
unsafe fn run_avx512<K: WithLanes>(kernel: K) -> K::Out {
    // SAFETY: `WithLanes::run` wants the instructions that this function enables, and what `launch` is promised.
    unsafe { kernel.run::<Avx512>() }
}
