//! Products of bf16 numbers two at a time, to the bit as one at a time.
//!
//! `vdpbf16ps` adds the product of the two numbers at odd places to a sum and then the product of those at even places, each
//! by a fused multiply-add that rounds to nearest (Intel SDM, "VDPBF16PS"; found to hold on AMD's processors by the tests). So
//! with l at the odd place and l + 1 at the even one, a sum is the same chain. What differs is what it does with numbers
//! below the normal range: it takes and gives zeros. [`Range::is_plain`] says for which numbers none can come up, for the
//! others the products are those of f32.

use super::split::PANEL;
use crate::isa::Isa;
use crate::memory::prefetch;
use crate::simd::{LANES, Lanes, WithLanes};

/// The magnitudes that the elements of two factors and the sums have had so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    a: Magnitudes,
    b: Magnitudes,
    /// What the sums went on from.
    sums: Magnitudes,
}

/// Magnitudes of floats, as their bits without the sign.
#[derive(Clone, Copy, Debug)]
pub(super) struct Magnitudes {
    /// The least one that is not zero, less one; a zero becomes the largest number.
    least: u32,
    most: u32,
    /// Bits that a bf16 number has not.
    low: u32,
}

const NONE: Magnitudes = Magnitudes { least: u32::MAX, most: 0, low: 0 };
/// Bits of f32 without the sign.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// Places of f32's fraction; the exponent stands above it.
const FRACTION: u32 = 23;
/// What is added to exponents.
const BIAS: u32 = 127;
/// Every sum is a multiple of the least product's last place, which is 2 to the power of both exponents less twice bf16's 7
/// places; that must not be below 2^-126.
const LEAST_EXPONENTS: u32 = 2 * BIAS + 14 - 126;
/// A million products below 2^100 are no infinity.
const MOST_EXPONENTS: u32 = 2 * BIAS + 100;

impl Magnitudes {
    fn and(self, other: Magnitudes) -> Magnitudes {
        let (least, most) = (self.least.min(other.least), self.most.max(other.most));
        Magnitudes { least, most, low: self.low | other.low }
    }

    /// The exponent of the least one, with the bias; none where all are zeros.
    fn least_exponent(self) -> Option<u32> {
        (self.least != u32::MAX).then(|| (self.least + 1) >> FRACTION)
    }
}

impl Range {
    /// Of no product yet.
    pub(super) const EMPTY: Range = Range { a: NONE, b: NONE, sums: NONE };

    /// Takes sums in that are gone on from.
    pub(super) fn meet_sums(&mut self, some: Magnitudes) {
        self.sums = self.sums.and(some);
    }

    /// Takes numbers of a in.
    pub(super) fn meet_a(&mut self, some: Magnitudes) {
        self.a = self.a.and(some);
    }

    /// Takes numbers of b in.
    pub(super) fn meet_b(&mut self, some: Magnitudes) {
        self.b = self.b.and(some);
    }

    /// Whether sums of these products are the same two at a time.
    pub(super) fn is_plain(&self) -> bool {
        let exponents = |most: u32| most >> FRACTION;
        let small = match (self.a.least_exponent(), self.b.least_exponent()) {
            (Some(a), Some(b)) => a == 0 || b == 0 || a + b < LEAST_EXPONENTS,
            // All products are of zeros.
            _ => false,
        };
        let small = small || self.sums.least_exponent().is_some_and(|least| least <= FRACTION);
        let large = exponents(self.a.most) + exponents(self.b.most) > MOST_EXPONENTS
            || exponents(self.sums.most) > BIAS + 100
            || [self.a, self.b].iter().any(|x| exponents(x.most) == 255);
        !small && !large && self.a.low | self.b.low == 0
    }
}

/// Rows of packed numbers.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) x: *mut f32,
    pub(super) pitch: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl WithLanes for Rows {
    type Out = Magnitudes;

    #[inline(always)]
    fn run<V: Lanes>(self) -> Magnitudes {
        let mut all = NONE;
        for r in 0..self.rows {
            // SAFETY: who makes `Rows` vouches for each of them.
            let row = unsafe { std::slice::from_raw_parts(self.x.add(r * self.pitch), self.columns) };
            for bits in row.iter().map(|x| x.to_bits()) {
                let magnitude = bits & MAGNITUDE;
                all.least = all.least.min(magnitude.wrapping_sub(1));
                all.most = all.most.max(magnitude);
                all.low |= bits & 0xffff;
            }
        }
        all
    }
}

/// Rows of a as pairs in place: element l and the next one become one word, at half of their place.
pub(super) struct PairsOfRow(pub(super) Rows);

impl WithLanes for PairsOfRow {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Rows { x, pitch, rows, columns } = self.0;
        for r in 0..rows {
            // SAFETY: who makes `Rows` vouches for each of them.
            let row = unsafe { std::slice::from_raw_parts_mut(x.add(r * pitch).cast::<u32>(), columns) };
            for l in 0..columns / 2 {
                row[l] = pair(row[2 * l], row[2 * l + 1]);
            }
            if !columns.is_multiple_of(2) {
                row[columns / 2] = pair(row[columns - 1], 0);
            }
        }
    }
}

/// Rows of a panel of b as pairs in place: row l and the next one become one row, at half of its place.
pub(super) struct PairsOfPanel(pub(super) Rows);

impl WithLanes for PairsOfPanel {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Rows { x, rows, .. } = self.0;
        for l in (0..rows).step_by(2) {
            // SAFETY: who makes `Rows` vouches for the panel's rows; a row behind the last one is not read.
            let row = |l: usize| unsafe { x.add(l * PANEL).cast::<[u32; PANEL]>().read() };
            let (first, second) = (row(l), if l + 1 < rows { row(l + 1) } else { [0; PANEL] });
            let mut both = [0; PANEL];
            for (to, (first, second)) in both.iter_mut().zip(first.iter().zip(second)) {
                *to = pair(*first, second);
            }
            // SAFETY: the place of a row that was read.
            unsafe { x.add(l / 2 * PANEL).cast::<[u32; PANEL]>().write(both) };
        }
    }
}

/// Rows of bf16 numbers without gaps as panels of pairs: row l and the next one become one row.
pub(super) struct PackPairs {
    pub(super) from: *const u16,
    /// Numbers from row to row.
    pub(super) down: isize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) into: *mut Pair,
    /// From panel to panel.
    pub(super) panel: usize,
}

/// Pairs of rows that are fetched before they are packed.
const AHEAD: isize = 6;

impl WithLanes for PackPairs {
    type Out = Magnitudes;

    #[inline(always)]
    fn run<V: Lanes>(self) -> Magnitudes {
        let mut range = Running { least: V::word(MAGNITUDE), most: V::word(0) };
        for l in (0..self.rows).step_by(2) {
            let row = self.from.wrapping_offset(l as isize * self.down);
            let next = row.wrapping_offset(self.down);
            for row in [row, next] {
                prefetch(row.wrapping_offset(2 * AHEAD * self.down).cast(), 2 * self.columns);
            }
            for c in (0..self.columns).step_by(LANES) {
                let n = LANES.min(self.columns - c);
                // SAFETY: columns of rows that exist, and the place of their pairs.
                unsafe {
                    let first = some::<V>(row.wrapping_add(c), n).shl::<16>();
                    let second = if l + 1 < self.rows { some::<V>(next.wrapping_add(c), n) } else { V::word(0) };
                    let into = self.into.add(c / PANEL * self.panel + l / 2 * PANEL + c % PANEL);
                    first.or(second).store(into.cast());
                    range.meet(first);
                    range.meet(second.shl::<16>());
                }
            }
        }
        range.magnitudes()
    }
}

/// Magnitudes of sixteen lanes.
struct Running<V> {
    least: V,
    most: V,
}

impl<V: Lanes> Running<V> {
    #[inline(always)]
    fn meet(&mut self, x: V) {
        let magnitude = x.and(V::word(MAGNITUDE));
        self.most = self.most.whole_less(magnitude).choose(magnitude, self.most);
        // As signed numbers none is less than a zero less one without its sign.
        let less_one = magnitude.wrapping_sub(V::word(1)).and(V::word(MAGNITUDE));
        self.least = less_one.whole_less(self.least).choose(less_one, self.least);
    }

    #[inline(always)]
    fn magnitudes(self) -> Magnitudes {
        let mut lanes = [[0f32; LANES]; 2];
        // SAFETY: room for sixteen each.
        unsafe {
            self.least.store(lanes[0].as_mut_ptr());
            self.most.store(lanes[1].as_mut_ptr());
        }
        let [least, most] = lanes.map(|lanes| lanes.map(f32::to_bits));
        let least = least.into_iter().min().filter(|least| *least != MAGNITUDE).unwrap_or(u32::MAX);
        Magnitudes { least, most: most.into_iter().max().unwrap_or(0), low: 0 }
    }
}

/// The first `n` of sixteen numbers, zeros behind them.
///
/// # Safety
/// They exist.
#[inline(always)]
unsafe fn some<V: Lanes>(p: *const u16, n: usize) -> V {
    if n == LANES {
        // SAFETY: all of them exist.
        return unsafe { V::load_u16(p) };
    }
    let mut all = [0; LANES];
    for (i, x) in all.iter_mut().enumerate().take(n) {
        // SAFETY: the first n exist.
        *x = unsafe { p.add(i).read() };
    }
    // SAFETY: sixteen.
    unsafe { V::load_u16(all.as_ptr()) }
}

/// Two numbers whose low halves are zero: the first at the odd place.
#[inline(always)]
fn pair(first: u32, second: u32) -> Pair {
    first & 0xffff_0000 | second >> 16
}

/// Whether a level multiplies pairs.
pub(super) fn are_multiplied(isa: Isa) -> bool {
    cfg!(target_arch = "x86_64") && isa == Isa::Avx512Bf16
}

/// Two numbers of bf16 that are multiplied at once, the first at the odd place.
pub(super) type Pair = u32;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::split::{LINE, tile_rows};
    use super::super::tile::Multiply;
    use super::{PANEL, Pair};
    use crate::simd::LANES;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn pairs(v: __m512i) -> __m512bh {
        // SAFETY: both are 512 bits.
        unsafe { std::mem::transmute::<__m512i, __m512bh>(v) }
    }

    impl Multiply<Pair> {
        /// `sums += a b`, or `sums = a b`.
        ///
        /// # Safety
        /// AVX-512 with BF16; the blocks and the sums exist.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
        pub(in super::super) unsafe fn run_pairs(&self) {
            for c in (0..self.columns).step_by(PANEL) {
                let panel = self.panel_at(c);
                let mut r = 0;
                while r < self.rows {
                    // SAFETY: rows that exist.
                    unsafe {
                        r += match tile_rows(self.rows - r) {
                            12 => panel.tile::<12>(r),
                            8 => panel.tile::<8>(r),
                            6 => panel.tile::<6>(r),
                            4 => panel.tile::<4>(r),
                            2 => panel.tile::<2>(r),
                            _ => panel.tile::<1>(r),
                        };
                    }
                }
            }
        }

        /// `R` rows of a panel, and how many they are.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
        #[inline]
        unsafe fn tile<const R: usize>(&self, row: usize) -> usize {
            let sums = |i: usize, c: usize| self.sums.wrapping_add((row + i) * self.pitch + c * LANES);
            let mut acc = [[_mm512_setzero_ps(); 2]; R];
            if !self.first {
                for (i, acc) in acc.iter_mut().enumerate() {
                    for (c, acc) in acc.iter_mut().enumerate() {
                        // SAFETY: the sums of this tile.
                        *acc = unsafe { _mm512_loadu_ps(sums(i, c)) };
                    }
                }
            }
            let a = self.a.wrapping_add(row * LINE);
            for l in 0..self.depth {
                // SAFETY: a row of pairs of the panel, and a pair of each row of a.
                unsafe {
                    let at = self.b.add(l * PANEL).cast::<__m512i>();
                    let b = [pairs(_mm512_loadu_si512(at)), pairs(_mm512_loadu_si512(at.add(1)))];
                    for (i, acc) in acc.iter_mut().enumerate() {
                        let x = pairs(_mm512_set1_epi32(a.add(i * LINE + l).cast::<i32>().read()));
                        acc[0] = _mm512_dpbf16_ps(acc[0], x, b[0]);
                        acc[1] = _mm512_dpbf16_ps(acc[1], x, b[1]);
                    }
                }
            }
            for (i, acc) in acc.into_iter().enumerate() {
                for (c, acc) in acc.into_iter().enumerate() {
                    // SAFETY: the sums of this tile.
                    unsafe { _mm512_storeu_ps(sums(i, c), acc) };
                }
            }
            R
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl super::tile::Multiply<Pair> {
    /// There is no such level here: [`are_multiplied`] says so.
    pub(super) unsafe fn run_pairs(&self) {
        unreachable!("pairs are multiplied by no level of this architecture");
    }
}
