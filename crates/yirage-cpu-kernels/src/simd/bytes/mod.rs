//! Lanes as four bytes of each of sixteen rows: what formats are packed and decoded with.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{Ordering, compiler_fence};

/// What stands in front of this is read before what stands behind it. LLVM reads the codes of a block from its middle to its
/// start and then to its end; memory that is read back and forth gives a third to two thirds of what it gives in order.
#[cfg(target_arch = "x86_64")] // measured there
#[inline(always)]
fn in_order() {
    compiler_fence(Ordering::SeqCst);
}

/// Operations on sixteen rows side by side: bytes of each, and what lanes they are as numbers. What is said of the use of
/// [`super::Lanes`] holds here too.
///
/// # Safety
/// Every method needs the instruction set of the type; those taking a pointer read (write) as many bytes there as
/// their description says, at any alignment.
#[expect(clippy::missing_safety_doc, reason = "what its own section says is of each of them")]
pub trait ByteLanes: Copy {
    /// 64 bytes: byte `4r + i` belongs to row `r`.
    type Bytes: Copy;
    /// The lanes as kernels of one instruction set have them.
    type Registers: Copy;
    /// Tokens whose sums the registers hold, beside 16 weights and a number of a token: 6 or 16.
    const TOKENS: usize = 6;

    /// The lanes in these registers.
    fn from_registers(registers: Self::Registers) -> Self;
    /// The registers of the lanes.
    fn registers(self) -> Self::Registers;
    /// A hint that 64 bytes about `p`, if there are any, will be read soon. Left out where the hardware does as well
    /// without.
    #[inline(always)]
    fn fetch(_: *const u8) {}
    /// 64 bytes. On x86-64 such reads and those of [`ByteLanes::load_in_order`] stay in their order (`in_order`).
    unsafe fn load_bytes(p: *const u8) -> Self::Bytes;
    /// Writes 64 bytes.
    unsafe fn store_bytes(p: *mut u8, v: Self::Bytes);
    /// Four words of each row: row `r`'s 16 bytes at `rows[r] + at`. Word `j` of all rows is `[j]`.
    unsafe fn words(rows: &[*const u8; 16], at: usize) -> [Self::Bytes; 4];
    /// Every byte with its highest bit flipped.
    unsafe fn flip(v: Self::Bytes) -> Self::Bytes;
    /// Of every byte the `width` bits from bit `from`, moved to bit `to`; all other bits zero. Constants by the time
    /// it is compiled.
    unsafe fn field(v: Self::Bytes, from: u32, width: u32, to: u32) -> Self::Bytes;
    /// Bitwise or.
    unsafe fn or_bytes(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Byte `v` of the table for every byte `v < 16`.
    unsafe fn lookup(table: &[u8; 16], v: Self::Bytes) -> Self::Bytes;
    /// Byte `i` of every row, as unsigned number.
    unsafe fn byte(v: Self::Bytes, i: usize) -> Self;
    /// The low (`i` = 0) or high (`i` = 1) two bytes of every row, as bf16.
    unsafe fn bf16(v: Self::Bytes, i: usize) -> Self;
    /// 16 binary16 numbers (32 bytes), in the order of reads.
    unsafe fn load_f16_in_order(p: *const u8) -> Self;
    /// 16 f32 (64 bytes), in the order of reads.
    unsafe fn load_in_order(p: *const f32) -> Self;
}
