//! Lanes without intrinsics. `mul_add` keeps the bits of the vector levels; where the processor has no fused
//! multiply-add it is slow, which no processor of the last decade is. Most operations are functions and not inlined: sixteen
//! lanes of each at every place made this level as much code as all the others together, and minutes to compile.

use super::{LANES, Lanes, WithLanes};

/// An array; the compiler makes vectors of it where it can.
#[derive(Clone, Copy)]
pub(crate) struct Plain(pub(super) [f32; LANES]);

macro_rules! each {
    ($i:ident => $e:expr) => {{
        let mut out = [0f32; LANES];
        let mut $i = 0;
        while $i < LANES {
            out[$i] = $e;
            $i += 1;
        }
        Plain(out)
    }};
}

impl Lanes for Plain {
    const ROWS: usize = 4;
    const WIDE: bool = false;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Plain([x; LANES])
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: `Lanes::load` is promised sixteen floats.
        Plain(unsafe { p.cast::<[f32; LANES]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: `Lanes::store` is promised sixteen floats.
        unsafe { p.cast::<[f32; LANES]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn stream(self, p: *mut f32) {
        // SAFETY: `Lanes::stream` is promised sixteen floats.
        unsafe { self.store(p) }
    }
    #[inline(never)]
    unsafe fn load_f16(p: *const u16) -> Self {
        // SAFETY: `Lanes::load_f16` is promised sixteen halves.
        let raw = unsafe { p.cast::<[u16; LANES]>().read_unaligned() };
        each!(i => half::f16::from_bits(raw[i]).to_f32())
    }
    #[inline(never)]
    unsafe fn turn(rows: &[*const f32; LANES]) -> [Self; 4] {
        // SAFETY: `Lanes::turn` is promised four values of each row.
        let rows = rows.map(|row| unsafe { row.cast::<[f32; 4]>().read_unaligned() });
        std::array::from_fn(|j| each!(i => rows[i][j]))
    }
    #[inline(never)]
    unsafe fn load_i8(p: *const i8) -> Self {
        // SAFETY: `Lanes::load_i8` is promised sixteen bytes.
        let raw = unsafe { p.cast::<[i8; LANES]>().read_unaligned() };
        each!(i => f32::from(raw[i]))
    }
    #[inline(never)]
    unsafe fn load_bf16_pairs(p: *const u16) -> (Self, Self) {
        // SAFETY: `Lanes::load_bf16_pairs` is promised thirty-two values.
        let raw = unsafe { p.cast::<[u16; 2 * LANES]>().read_unaligned() };
        let bf16 = |x: u16| f32::from_bits(u32::from(x) << 16);
        (each!(i => bf16(raw[2 * i])), each!(i => bf16(raw[2 * i + 1])))
    }
    #[inline(never)]
    fn add(self, b: Self) -> Self {
        each!(i => self.0[i] + b.0[i])
    }
    #[inline(never)]
    fn sub(self, b: Self) -> Self {
        each!(i => self.0[i] - b.0[i])
    }
    #[inline(never)]
    fn mul(self, b: Self) -> Self {
        each!(i => self.0[i] * b.0[i])
    }
    #[inline(never)]
    fn div(self, b: Self) -> Self {
        each!(i => self.0[i] / b.0[i])
    }
    #[inline(never)]
    fn fma(self, b: Self, c: Self) -> Self {
        each!(i => self.0[i].mul_add(b.0[i], c.0[i]))
    }
    #[inline(never)]
    fn max(self, b: Self) -> Self {
        each!(i => if self.0[i] > b.0[i] { self.0[i] } else { b.0[i] })
    }
    #[inline(never)]
    fn min(self, b: Self) -> Self {
        each!(i => if self.0[i] < b.0[i] { self.0[i] } else { b.0[i] })
    }
    #[inline(never)]
    fn round(self) -> Self {
        each!(i => self.0[i].round_ties_even())
    }
    #[inline(never)]
    fn pow2(self) -> Self {
        each!(i => f32::from_bits(((self.0[i] as i32 + 127) as u32) << 23))
    }
    #[inline(never)]
    fn sqrt(self) -> Self {
        each!(i => self.0[i].sqrt())
    }
    #[inline(never)]
    fn abs(self) -> Self {
        each!(i => self.0[i].abs())
    }
    #[inline(never)]
    fn with_sign(self, sign: Self) -> Self {
        each!(i => self.0[i].copysign(sign.0[i]))
    }
    #[inline(never)]
    fn if_less(self, b: Self, x: Self, y: Self) -> Self {
        each!(i => if self.0[i] < b.0[i] { x.0[i] } else { y.0[i] })
    }
    #[inline(never)]
    fn keep(self, from: usize, to: usize, other: Self) -> Self {
        each!(i => if i >= from && i < to { self.0[i] } else { other.0[i] })
    }
    #[inline(never)]
    fn any_greater(self, b: Self) -> bool {
        let mut any = false;
        for i in 0..LANES {
            any |= self.0[i] > b.0[i];
        }
        any
    }
    #[inline(never)]
    fn any_nan(self) -> bool {
        let mut any = false;
        for x in self.0 {
            any |= x.is_nan();
        }
        any
    }
    #[inline(never)]
    fn sum(self) -> f32 {
        let mut v = self.0;
        for step in [8, 4, 2, 1] {
            for i in 0..step {
                v[i] += v[i + step];
            }
        }
        v[0]
    }
    #[inline(never)]
    fn largest(self) -> f32 {
        let mut v = self.0;
        for step in [8, 4, 2, 1] {
            for i in 0..step {
                v[i] = if v[i] > v[i + step] { v[i] } else { v[i + step] };
            }
        }
        v[0]
    }
    #[inline(always)]
    unsafe fn apart<K: WithLanes>(kernel: K) -> K::Out {
        // SAFETY: `run_everywhere` wants what `Lanes::apart` is promised.
        unsafe { super::run_everywhere::<Self, K>(kernel) }
    }
}
