//! Words without intrinsics.

use super::BitLanes;
use crate::simd::LANES;
use crate::simd::plain::Plain;

macro_rules! each {
    ($i:ident => $e:expr) => {{
        let mut out = [0f32; LANES];
        let mut $i = 0;
        while $i < LANES {
            out[$i] = f32::from_bits($e);
            $i += 1;
        }
        Plain(out)
    }};
}

/// All bits, or none.
#[inline(always)]
fn mask(set: bool) -> u32 {
    u32::from(set).wrapping_neg()
}

impl BitLanes for Plain {
    #[inline(always)]
    fn word(bits: u32) -> Self {
        Plain([f32::from_bits(bits); LANES])
    }
    #[inline(never)]
    fn and(self, b: Self) -> Self {
        each!(i => self.0[i].to_bits() & b.0[i].to_bits())
    }
    #[inline(never)]
    fn or(self, b: Self) -> Self {
        each!(i => self.0[i].to_bits() | b.0[i].to_bits())
    }
    #[inline(never)]
    fn xor(self, b: Self) -> Self {
        each!(i => self.0[i].to_bits() ^ b.0[i].to_bits())
    }
    #[inline(never)]
    fn shl<const N: u32>(self) -> Self {
        each!(i => self.0[i].to_bits() << N)
    }
    #[inline(never)]
    fn shr<const N: u32>(self) -> Self {
        each!(i => self.0[i].to_bits() >> N)
    }
    #[inline(never)]
    fn wrapping_add(self, b: Self) -> Self {
        each!(i => self.0[i].to_bits().wrapping_add(b.0[i].to_bits()))
    }
    #[inline(never)]
    fn wrapping_sub(self, b: Self) -> Self {
        each!(i => self.0[i].to_bits().wrapping_sub(b.0[i].to_bits()))
    }
    #[inline(never)]
    fn wrapping_mul(self, b: Self) -> Self {
        each!(i => self.0[i].to_bits().wrapping_mul(b.0[i].to_bits()))
    }
    #[inline(never)]
    fn whole_less(self, b: Self) -> Self {
        each!(i => mask((self.0[i].to_bits() as i32) < b.0[i].to_bits() as i32))
    }
    #[inline(never)]
    fn whole_equal(self, b: Self) -> Self {
        each!(i => mask(self.0[i].to_bits() == b.0[i].to_bits()))
    }
    #[inline(never)]
    fn less(self, b: Self) -> Self {
        each!(i => mask(self.0[i] < b.0[i]))
    }
    #[inline(never)]
    fn less_equal(self, b: Self) -> Self {
        each!(i => mask(self.0[i] <= b.0[i]))
    }
    #[inline(never)]
    fn equal(self, b: Self) -> Self {
        each!(i => mask(self.0[i] == b.0[i]))
    }
    #[inline(never)]
    fn choose(self, x: Self, y: Self) -> Self {
        each!(i => (self.0[i].to_bits() & x.0[i].to_bits()) | (!self.0[i].to_bits() & y.0[i].to_bits()))
    }
    #[inline(never)]
    fn floats(self) -> Self {
        each!(i => (self.0[i].to_bits() as i32 as f32).to_bits())
    }
    #[inline(never)]
    fn cut(self) -> Self {
        each!(i => self.0[i] as i32 as u32)
    }
    #[inline(never)]
    fn halves(self) -> Self {
        each!(i => half::f16::from_f32(self.0[i]).to_f32().to_bits())
    }
    #[inline(always)]
    unsafe fn store_f16(self, p: *mut u16) {
        let halves: [u16; LANES] = std::array::from_fn(|i| half::f16::from_f32(self.0[i]).to_bits());
        // SAFETY: `BitLanes::store_f16` is promised sixteen halves.
        unsafe { p.cast::<[u16; LANES]>().write_unaligned(halves) }
    }
    #[inline(never)]
    unsafe fn load_u16(p: *const u16) -> Self {
        // SAFETY: `BitLanes::load_u16` is promised sixteen words.
        let raw = unsafe { p.cast::<[u16; LANES]>().read_unaligned() };
        each!(i => u32::from(raw[i]))
    }
    #[inline(always)]
    unsafe fn store_u16(self, p: *mut u16) {
        let low: [u16; LANES] = std::array::from_fn(|i| self.0[i].to_bits() as u16);
        // SAFETY: `BitLanes::store_u16` is promised sixteen words.
        unsafe { p.cast::<[u16; LANES]>().write_unaligned(low) }
    }
    #[inline(never)]
    unsafe fn load_u8(p: *const u8) -> Self {
        // SAFETY: `BitLanes::load_u8` is promised sixteen bytes.
        let raw = unsafe { p.cast::<[u8; LANES]>().read_unaligned() };
        each!(i => u32::from(raw[i]))
    }
    #[inline(always)]
    unsafe fn store_u8(self, p: *mut u8) {
        let low: [u8; LANES] = std::array::from_fn(|i| self.0[i].to_bits() as u8);
        // SAFETY: `BitLanes::store_u8` is promised sixteen bytes.
        unsafe { p.cast::<[u8; LANES]>().write_unaligned(low) }
    }
}
