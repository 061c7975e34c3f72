//! Products of bf16 numbers two at a time, to the bit as one at a time where [`ExponentLimits`] say so.

use super::magnitudes::{ExponentLimits, Magnitudes, PackedBlockRows};
use super::split::PANEL;
use crate::isa::Isa;
use crate::simd::{Lanes, WithLanes};

/// Two numbers of bf16 that are multiplied at once, the first at the odd place.
pub(super) type Bf16Pair = u32;

/// Two numbers whose low halves are zero: the first at the odd place.
#[inline(always)]
fn pair(first: u32, second: u32) -> Bf16Pair {
    first & 0xffff_0000 | second >> 16
}

/// Whether a level multiplies pairs.
pub(super) fn are_multiplied(isa: Isa) -> bool {
    cfg!(target_arch = "x86_64") && matches!(isa, Isa::Avx512Bf16 | Isa::Amx)
}

/// Numbers of a row that become pairs at once.
const TOGETHER: usize = 32;

/// Rows of a as pairs in place: element l and the next one become one word, at half of their place.
pub(super) struct PairsOfRow(pub(super) PackedBlockRows);

impl WithLanes for PairsOfRow {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let PackedBlockRows { x, pitch, rows, columns } = self.0;
        for r in 0..rows {
            // SAFETY: who makes `PackedBlockRows` vouches for each of them.
            let row = unsafe { std::slice::from_raw_parts_mut(x.add(r * pitch).cast::<u32>(), columns) };
            let whole = columns / TOGETHER * TOGETHER;
            for l in (0..whole).step_by(TOGETHER) {
                // Read before anything is written, so that it is done in registers.
                let mut numbers = [0; TOGETHER];
                numbers.copy_from_slice(&row[l..l + TOGETHER]);
                for (to, both) in row[l / 2..].iter_mut().zip(numbers.as_chunks::<2>().0) {
                    *to = pair(both[0], both[1]);
                }
            }
            for l in whole / 2..columns / 2 {
                row[l] = pair(row[2 * l], row[2 * l + 1]);
            }
            if !columns.is_multiple_of(2) {
                row[columns / 2] = pair(row[columns - 1], 0);
            }
        }
    }
}

/// Rows of a panel of b as pairs in place: row l and the next one become one row, at half of its place.
pub(super) struct PairsOfPanel(pub(super) PackedBlockRows);

impl WithLanes for PairsOfPanel {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let PackedBlockRows { x, rows, .. } = self.0;
        for l in (0..rows).step_by(2) {
            // SAFETY: who makes `PackedBlockRows` vouches for the panel's rows; a row behind the last one is not read.
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

/// Rows of bf16 numbers without gaps that become pairs.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // pairs are multiplied by AVX-512 alone
pub(super) struct Numbers {
    pub(super) from: *const u16,
    /// Numbers from row to row.
    pub(super) down: isize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::split::{LINE, tile_rows};
    use super::super::tile::Multiply;
    use super::{Bf16Pair, ExponentLimits, Magnitudes, Numbers, PANEL, PackedBlockRows};
    use crate::memory::prefetch;
    use crate::simd::LANES;
    use std::arch::x86_64::*;

    /// bf16 numbers of a vector.
    const NUMBERS: usize = 2 * LANES;
    /// Pairs of rows that are fetched before they are packed.
    const AHEAD: isize = 6;

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn pairs(v: __m512i) -> __m512bh {
        // SAFETY: both are 512 bits.
        unsafe { std::mem::transmute::<__m512i, __m512bh>(v) }
    }

    /// Magnitudes of the numbers of vectors.
    #[derive(Clone, Copy)]
    struct Met {
        least: __m512i,
        most: __m512i,
    }

    impl Met {
        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        fn none() -> Met {
            Met { least: _mm512_set1_epi16(-1), most: _mm512_setzero_si512() }
        }

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        fn meet(&mut self, x: __m512i) {
            let magnitude = _mm512_and_si512(x, _mm512_set1_epi16(i16::MAX));
            self.most = _mm512_max_epu16(self.most, magnitude);
            // A zero less one is the largest number.
            self.least = _mm512_min_epu16(self.least, _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1)));
        }

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        fn magnitudes(self) -> Magnitudes {
            let mut lanes = [[0u16; NUMBERS]; 2];
            // SAFETY: room for 32 numbers each.
            unsafe {
                _mm512_storeu_si512(lanes[0].as_mut_ptr().cast(), self.least);
                _mm512_storeu_si512(lanes[1].as_mut_ptr().cast(), self.most);
            }
            let least = lanes[0].iter().copied().min().unwrap_or(u16::MAX);
            Magnitudes::of_bf16(least, lanes[1].iter().copied().max().unwrap_or(0))
        }

        /// Whether all are within limits.
        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        fn within(self, least: __m512i, most: __m512i) -> bool {
            _mm512_cmplt_epu16_mask(self.least, least) == 0 && _mm512_cmpgt_epu16_mask(self.most, most) == 0
        }
    }

    /// The first `n` of 32 numbers, zeros behind them.
    ///
    /// # Safety
    /// They exist.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    unsafe fn some(p: *const u16, n: usize) -> __m512i {
        let mask = if n >= NUMBERS { u32::MAX } else { (1 << n) - 1 };
        // SAFETY: lanes without a bit are not read.
        unsafe { _mm512_maskz_loadu_epi16(mask, p.cast()) }
    }

    /// Which numbers of two rows make the pairs of their columns: those of the first sixteen, those of the others.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn places() -> [__m512i; 2] {
        let places = |first: u32| -> [u32; LANES] {
            std::array::from_fn(|c| {
                let column = first + c as u32;
                (column << 16) | (column + NUMBERS as u32)
            })
        };
        // SAFETY: sixteen words each.
        [0, 16].map(|first| unsafe { _mm512_loadu_si512(places(first).as_ptr().cast()) })
    }

    impl Numbers {
        /// As panels of pairs: row l and the next one become one row of words, panels `panel` apart.
        ///
        /// # Safety
        /// AVX-512; the rows exist, and room for as many words in whole panels.
        #[target_feature(enable = "avx512f,avx512bw")]
        pub(in super::super) unsafe fn as_panels(self, into: *mut Bf16Pair, panel: usize) -> Magnitudes {
            let (mut met, [low, high]) = (Met::none(), places());
            for l in (0..self.rows).step_by(2) {
                let first = self.from.wrapping_offset(l as isize * self.down);
                let second = first.wrapping_offset(self.down);
                for row in [first, second] {
                    prefetch(row.wrapping_offset(2 * AHEAD * self.down).cast(), 2 * self.columns);
                }
                for c in (0..self.columns).step_by(PANEL) {
                    let n = self.columns - c;
                    // SAFETY: columns of rows that exist, and the place of their pairs.
                    unsafe {
                        let first = some(first.add(c), n);
                        let second = if l + 1 < self.rows { some(second.add(c), n) } else { _mm512_setzero_si512() };
                        met.meet(first);
                        met.meet(second);
                        let into = into.add(c / PANEL * panel + l / 2 * PANEL).cast::<__m512i>();
                        _mm512_storeu_si512(into, _mm512_permutex2var_epi16(first, low, second));
                        _mm512_storeu_si512(into.add(1), _mm512_permutex2var_epi16(first, high, second));
                    }
                }
            }
            met.magnitudes()
        }

        /// As rows of pairs: number l and the next one become one word, rows [`LINE`] words apart.
        ///
        /// # Safety
        /// AVX-512; the rows exist, and room for as many words, up to whole vectors.
        #[target_feature(enable = "avx512f,avx512bw")]
        pub(in super::super) unsafe fn as_rows(self, into: *mut Bf16Pair) -> Magnitudes {
            let mut met = Met::none();
            for r in 0..self.rows {
                let row = self.from.wrapping_offset(r as isize * self.down);
                prefetch(row.wrapping_offset(AHEAD * self.down).cast(), 2 * self.columns);
                for c in (0..self.columns).step_by(NUMBERS) {
                    // SAFETY: columns of a row that exists, and the place of their pairs.
                    unsafe {
                        let x = some(row.add(c), self.columns - c);
                        met.meet(x);
                        _mm512_storeu_si512(into.add(r * LINE + c / 2).cast(), _mm512_rol_epi32::<16>(x));
                    }
                }
            }
            met.magnitudes()
        }
    }

    impl PackedBlockRows {
        /// Words of two numbers, the first at the even place, as pairs in place.
        ///
        /// # Safety
        /// AVX-512; the rows exist, of whole vectors.
        #[target_feature(enable = "avx512f,avx512bw")]
        pub(in super::super) unsafe fn words_as_pairs(self) -> Magnitudes {
            let mut met = Met::none();
            for r in 0..self.rows {
                for c in (0..self.columns).step_by(LANES) {
                    // SAFETY: columns of a row that exists.
                    unsafe {
                        let at = self.x.add(r * self.pitch + c).cast::<__m512i>();
                        let words = _mm512_loadu_si512(at);
                        met.meet(words);
                        _mm512_storeu_si512(at, _mm512_rol_epi32::<16>(words));
                    }
                }
            }
            met.magnitudes()
        }
    }

    impl Multiply<Bf16Pair, Bf16Pair> {
        /// `sums += a b`, or `sums = a b`.
        ///
        /// # Safety
        /// AVX-512 with BF16; the blocks and the sums exist.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
        pub(in super::super) unsafe fn run_pairs(&self) {
            for c in (0..self.columns).step_by(PANEL) {
                self.fetch_at(c);
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
            // SAFETY: a row of pairs of the panel, a pair of each row of a, and the sums of this tile.
            unsafe {
                let mut acc = self.sums_of::<R>(row);
                let a = self.a.wrapping_add(row * LINE);
                for l in 0..self.depth {
                    let at = self.b.offset(l as isize * self.down).cast::<__m512i>();
                    add(&mut acc, a.add(l), [_mm512_loadu_si512(at), _mm512_loadu_si512(at.add(1))]);
                }
                self.store(row, acc);
            }
            R
        }
    }

    impl Multiply<Bf16Pair, u16> {
        /// `sums += a b`, or `sums = a b`, of rows of b as they lie, up to the first panel with numbers beyond the limits:
        /// how many columns that are. `depth` counts rows of b; behind the last one of a is a zero where they are odd.
        ///
        /// # Safety
        /// AVX-512 with BF16; the block of a, the rows of b and the sums exist, for whole panels of columns.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
        pub(in super::super) unsafe fn run_pairs(&self, limits: ExponentLimits) -> usize {
            for c in (0..self.columns).step_by(PANEL) {
                self.fetch_at(c);
                let panel = self.panel_at(c);
                let mut r = 0;
                while r < self.rows {
                    // SAFETY: rows that exist.
                    let plain = unsafe {
                        if r == 0 { panel.rows::<true>(&mut r, limits) } else { panel.rows::<false>(&mut r, limits) }
                    };
                    if !plain {
                        return c;
                    }
                }
            }
            self.columns
        }

        /// The rows of a panel's next tile.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
        #[inline]
        unsafe fn rows<const FIRST: bool>(&self, row: &mut usize, limits: ExponentLimits) -> bool {
            let rows = tile_rows(self.rows - *row).min(8);
            // SAFETY: rows that exist.
            let plain = unsafe {
                match rows {
                    8 => self.tile::<8, FIRST>(*row, limits),
                    6 => self.tile::<6, FIRST>(*row, limits),
                    4 => self.tile::<4, FIRST>(*row, limits),
                    2 => self.tile::<2, FIRST>(*row, limits),
                    _ => self.tile::<1, FIRST>(*row, limits),
                }
            };
            *row += rows;
            plain
        }

        /// `R` rows of a panel, unless it has numbers beyond the limits. The first rows find that out for all.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
        #[inline]
        unsafe fn tile<const R: usize, const FIRST: bool>(&self, row: usize, limits: ExponentLimits) -> bool {
            let (mut met, [low, high]) = (Met::none(), places());
            // SAFETY: rows of the panel, a pair of each row of a, and the sums of this tile.
            unsafe {
                let mut acc = self.sums_of::<R>(row);
                let a = self.a.wrapping_add(row * LINE);
                let mut from = self.b;
                for l in 0..self.depth.div_ceil(2) {
                    let first = _mm512_loadu_si512(from.cast());
                    from = from.wrapping_offset(self.down);
                    let second =
                        if 2 * l + 1 < self.depth { _mm512_loadu_si512(from.cast()) } else { _mm512_setzero_si512() };
                    from = from.wrapping_offset(self.down);
                    if FIRST {
                        met.meet(first);
                        met.meet(second);
                    }
                    let b = [low, high].map(|places| _mm512_permutex2var_epi16(first, places, second));
                    add(&mut acc, a.add(l), b);
                }
                let [least, most] = limits.of_bf16().map(|limit| _mm512_set1_epi16(limit as i16));
                let plain = met.within(least, most);
                if plain {
                    self.store(row, acc);
                }
                plain
            }
        }
    }

    /// Adds the products of a pair of each row of a and of two vectors of pairs.
    ///
    /// # Safety
    /// The pairs of a exist.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    #[inline]
    unsafe fn add<const R: usize>(acc: &mut [[__m512; 2]; R], a: *const Bf16Pair, b: [__m512i; 2]) {
        for (i, acc) in acc.iter_mut().enumerate() {
            // SAFETY: what `add` is promised; `StridedInput::within` and `StridedOutput::within` check the operands,
            // `contract` the scratch.
            let x = pairs(_mm512_set1_epi32(unsafe { a.add(i * LINE).cast::<i32>().read() }));
            acc[0] = _mm512_dpbf16_ps(acc[0], x, pairs(b[0]));
            acc[1] = _mm512_dpbf16_ps(acc[1], x, pairs(b[1]));
        }
    }

    impl<B: Copy> Multiply<Bf16Pair, B> {
        /// The sums of `R` rows of a panel so far.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
        #[inline]
        unsafe fn sums_of<const R: usize>(&self, row: usize) -> [[__m512; 2]; R] {
            let mut acc = [[_mm512_setzero_ps(); 2]; R];
            if !self.first {
                for (i, acc) in acc.iter_mut().enumerate() {
                    for (c, acc) in acc.iter_mut().enumerate() {
                        // SAFETY: the sums of this tile.
                        *acc = unsafe { _mm512_loadu_ps(self.sums.add((row + i) * self.pitch + c * LANES)) };
                    }
                }
            }
            acc
        }

        /// Puts the sums of `R` rows of a panel back.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
        #[inline]
        unsafe fn store<const R: usize>(&self, row: usize, acc: [[__m512; 2]; R]) {
            for (i, acc) in acc.into_iter().enumerate() {
                for (c, acc) in acc.into_iter().enumerate() {
                    // SAFETY: the sums of this tile.
                    unsafe { _mm512_storeu_ps(self.sums.add((row + i) * self.pitch + c * LANES), acc) };
                }
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    //! No level of this architecture multiplies pairs: `are_multiplied` says so.
    use super::super::tile::Multiply;
    use super::{Bf16Pair, ExponentLimits, Magnitudes, Numbers, PackedBlockRows};

    impl Numbers {
        pub(in super::super) unsafe fn as_panels(self, _: *mut Bf16Pair, _: usize) -> Magnitudes {
            unreachable!("pairs are multiplied by no level of this architecture");
        }
        pub(in super::super) unsafe fn as_rows(self, _: *mut Bf16Pair) -> Magnitudes {
            unreachable!("pairs are multiplied by no level of this architecture");
        }
    }

    impl PackedBlockRows {
        pub(in super::super) unsafe fn words_as_pairs(self) -> Magnitudes {
            unreachable!("pairs are multiplied by no level of this architecture");
        }
    }

    impl Multiply<Bf16Pair, Bf16Pair> {
        pub(in super::super) unsafe fn run_pairs(&self) {
            unreachable!("pairs are multiplied by no level of this architecture");
        }
    }

    impl Multiply<Bf16Pair, u16> {
        pub(in super::super) unsafe fn run_pairs(&self, _: ExponentLimits) -> usize {
            unreachable!("pairs are multiplied by no level of this architecture");
        }
    }
}
