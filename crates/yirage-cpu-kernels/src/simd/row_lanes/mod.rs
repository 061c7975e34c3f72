//! Sixteen output rows side by side: the vector vocabulary that formats are packed and decoded with.
//!
//! A [`RowLanes`] type names an instruction set. `I` is 64 bytes (byte `4r + i` belongs to row `r`), `F` is 16 f32 (one
//! per row). Everything is inlined into kernels that enable the instruction set; [`launch`] alone checks for it.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2Lanes;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512Lanes;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::NeonLanes;
pub(crate) use portable::PortableLanes;

use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{Ordering, compiler_fence};

/// What stands in front of this is read before what stands behind it. LLVM reads the codes of a block from its middle to its
/// start and then to its end; memory that is read back and forth gives a third to two thirds of what it gives in order.
#[cfg(target_arch = "x86_64")] // measured there
#[inline(always)]
fn in_order() {
    compiler_fence(Ordering::SeqCst);
}

/// A computation written once over [`RowLanes`].
pub(crate) trait RowLanesJob {
    /// The computation.
    ///
    /// # Safety
    /// The instruction set of `L`, and what the type says. `#[inline(always)]`, with all that it calls with lanes, so
    /// that it is compiled with the instructions of the level.
    unsafe fn run<L: RowLanes>(self);
}

/// Runs a job at a level.
///
/// # Safety
/// What the job's type says.
///
/// # Panics
/// If the processor lacks the level.
pub(crate) unsafe fn launch<J: RowLanesJob>(isa: Isa, job: J) {
    assert!(isa.available(), "this CPU lacks {isa}");
    // SAFETY: `Isa::available` has just said so of the level; what the job needs, `launch` is promised.
    unsafe {
        match isa.vectors() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512(job),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2(job),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => job.run::<NeonLanes>(),
            _ => job.run::<PortableLanes>(),
        }
    }
}

/// At the level with AVX-512.
///
/// # Safety
/// As for [`launch`], which has checked the level.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn avx512<J: RowLanesJob>(job: J) {
    // SAFETY: what `avx512` is promised; `row_lanes::launch` or `Dispatch::new` has checked the level.
    unsafe { job.run::<Avx512Lanes>() }
}

/// At the level with AVX2.
///
/// # Safety
/// As for [`launch`], which has checked the level.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<J: RowLanesJob>(job: J) {
    // SAFETY: what `avx2` is promised; `row_lanes::launch` or `Dispatch::new` has checked the level.
    unsafe { job.run::<Avx2Lanes>() }
}

/// Operations on 16 rows.
///
/// # Safety
/// Every method needs the instruction set of the type; those taking a pointer read (write) as many bytes there as
/// their description says, at any alignment.
pub(crate) trait RowLanes {
    /// 64 bytes.
    type I: Copy;
    /// 16 f32.
    type F: Copy;
    /// Tokens whose sums the registers hold, beside 16 weights and a number of a token: 6 or 16.
    const TOKENS: usize = 6;

    /// A hint that 64 bytes about `p`, if there are any, will be read soon. Left out where the hardware does as well
    /// without.
    #[inline(always)]
    fn fetch(_: *const u8) {}
    /// 64 bytes. On x86-64 such reads and those of floats stay in their order (`in_order`).
    unsafe fn load(p: *const u8) -> Self::I;
    /// Writes 64 bytes.
    unsafe fn put(p: *mut u8, v: Self::I);
    /// Four words of each row: row `r`'s 16 bytes at `rows[r] + at`. Word `j` of all rows is `[j]`.
    unsafe fn words(rows: &[*const u8; 16], at: usize) -> [Self::I; 4];
    /// Every byte with its highest bit flipped.
    unsafe fn flip(v: Self::I) -> Self::I;
    /// Of every byte the `width` bits from bit `from`, moved to bit `to`; all other bits zero. Constants by the time
    /// it is compiled.
    unsafe fn field(v: Self::I, from: u32, width: u32, to: u32) -> Self::I;
    /// Bitwise or.
    unsafe fn or(a: Self::I, b: Self::I) -> Self::I;
    /// Byte `v` of the table for every byte `v < 16`.
    unsafe fn lookup(table: &[u8; 16], v: Self::I) -> Self::I;
    /// Byte `i` of every row, as unsigned number.
    unsafe fn byte(v: Self::I, i: usize) -> Self::F;
    /// The low (`i` = 0) or high (`i` = 1) two bytes of every row, as bf16.
    unsafe fn bf16(v: Self::I, i: usize) -> Self::F;
    /// 16 binary16 numbers (32 bytes).
    unsafe fn f16(p: *const u8) -> Self::F;
    /// 16 signed bytes.
    unsafe fn i8(p: *const u8) -> Self::F;
    /// 16 f32 (64 bytes).
    unsafe fn floats(p: *const f32) -> Self::F;
    /// Writes 16 f32 (64 bytes).
    unsafe fn store(p: *mut f32, v: Self::F);
    /// `x` in every row.
    unsafe fn splat(x: f32) -> Self::F;
    /// `a - b`.
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    /// `a * b`.
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, rounded once.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
}
