//! Lanes as words of 32 bits: masks, whole numbers, and the element types that memory has beside f32.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;

/// Operations on the bits of sixteen lanes. A mask has all bits of a lane set, or none. What is said of the use of
/// [`super::Lanes`] holds here too.
///
/// # Safety
/// Of the loads and stores: the addresses have what the method says that it touches.
#[expect(clippy::missing_safety_doc, reason = "what its own section says is of each of them")]
pub trait BitLanes: Copy {
    /// The same word in all lanes.
    fn word(bits: u32) -> Self;
    /// Bits of both.
    fn and(self, b: Self) -> Self;
    /// Bits of either.
    fn or(self, b: Self) -> Self;
    /// Bits of one of them.
    fn xor(self, b: Self) -> Self;
    /// Towards the high bits by N.
    fn shl<const N: u32>(self) -> Self;
    /// Towards the low bits by N, zeros coming in.
    fn shr<const N: u32>(self) -> Self;
    /// The low 32 bits of the sum.
    fn wrapping_add(self, b: Self) -> Self;
    /// The low 32 bits of the difference.
    fn wrapping_sub(self, b: Self) -> Self;
    /// The low 32 bits of the product.
    fn wrapping_mul(self, b: Self) -> Self;
    /// Mask of `self < b` of signed numbers.
    fn whole_less(self, b: Self) -> Self;
    /// Mask of equal words.
    fn whole_equal(self, b: Self) -> Self;
    /// Mask of `self < b` of floats, false where either is NaN.
    fn less(self, b: Self) -> Self;
    /// Mask of `self <= b` of floats, false where either is NaN.
    fn less_equal(self, b: Self) -> Self;
    /// Mask of `self == b` of floats, false where either is NaN.
    fn equal(self, b: Self) -> Self;
    /// Of a mask: `self ? x : y`.
    fn choose(self, x: Self, y: Self) -> Self;
    /// Signed numbers as floats, to nearest.
    fn floats(self) -> Self;
    /// Floats within the range of signed numbers as those, cut off; others give anything.
    fn cut(self) -> Self;
    /// Floats rounded to the nearest half, ties to even, NaN quiet.
    fn halves(self) -> Self;
    /// Sixteen halves of memory as [`BitLanes::halves`] makes them.
    unsafe fn store_f16(self, p: *mut u16);
    /// Sixteen words of 16 bits, zeros above.
    unsafe fn load_u16(p: *const u16) -> Self;
    /// The low 16 bits of each lane, whose upper ones are 0.
    unsafe fn store_u16(self, p: *mut u16);
    /// Sixteen bytes, zeros above.
    unsafe fn load_u8(p: *const u8) -> Self;
    /// The low byte of each lane, whose upper bits are 0.
    unsafe fn store_u8(self, p: *mut u8);
}
