//! Register tiles of sums: rows of a, which are packed, times rows of b, which are packed or lie in memory.

use super::float::Float;
use super::split::{LINE, PANEL, tile_rows};
use crate::memory::{LINE as CACHE_LINE, prefetch};
use crate::simd::{LANES, Lanes, WithLanes};

/// Memory that is fetched while tiles are computed: rows that lie apart, in the order of their addresses.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    pub(super) first: *const u8,
    /// Bytes from row to row.
    pub(super) down: isize,
    pub(super) rows: usize,
    /// Bytes of a row.
    pub(super) bytes: usize,
}

impl Ahead {
    /// Nothing.
    pub(super) const NONE: Ahead = Ahead { first: std::ptr::null(), down: 0, rows: 0, bytes: 0 };

    /// Fetches part `i` of `parts`.
    #[inline(always)]
    pub(super) fn fetch(&self, i: usize, parts: usize) {
        if self.rows == 0 {
            return;
        }
        let across = self.bytes.div_ceil(CACHE_LINE);
        let lines = self.rows * across;
        let (mut at, end) = (lines * i / parts, lines * (i + 1) / parts);
        while at < end {
            let (row, line) = (at / across, at % across);
            let n = (across - line).min(end - at);
            let from = self.first.wrapping_offset(row as isize * self.down).wrapping_add(line * CACHE_LINE);
            prefetch(from, n * CACHE_LINE);
            at += n;
        }
    }
}

/// `sums += a b`, or `sums = a b`, of numbers or of pairs of them. Each sum is one chain of fused multiply-adds, l ascending.
#[derive(Clone, Copy)]
pub(super) struct Multiply<A, B> {
    /// `[row][l]`, a row every [`LINE`].
    pub(super) a: *const A,
    /// Panels of [`PANEL`] columns.
    pub(super) b: *const B,
    /// Elements from row to row of a panel.
    pub(super) down: isize,
    /// Elements from panel to panel.
    pub(super) panel: usize,
    /// `[row][column]`, columns up to whole panels.
    pub(super) sums: *mut f32,
    /// From row to row of the sums.
    pub(super) pitch: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) depth: usize,
    /// Nothing was summed yet.
    pub(super) first: bool,
    /// Fetched meanwhile.
    pub(super) ahead: Ahead,
}

impl<A: Copy, B: Copy> Multiply<A, B> {
    /// What is left from a panel's first column on.
    #[inline(always)]
    pub(super) fn panel_at(&self, c: usize) -> Multiply<A, B> {
        Multiply {
            b: self.b.wrapping_add(c / PANEL * self.panel),
            sums: self.sums.wrapping_add(c),
            columns: self.columns - c,
            ..*self
        }
    }

    /// Fetches the part of what comes next that belongs to the panel of column `c`.
    #[inline(always)]
    pub(super) fn fetch_at(&self, c: usize) {
        self.ahead.fetch(c / PANEL, self.columns.div_ceil(PANEL));
    }
}

impl<E: Float> WithLanes for Multiply<f32, E> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        for c in (0..self.columns).step_by(PANEL) {
            self.fetch_at(c);
            let panel = self.panel_at(c);
            // SAFETY: who makes a `Multiply` vouches for both blocks and the sums.
            unsafe {
                if V::WIDE && panel.columns > LANES {
                    panel.rows::<V, 2>();
                } else {
                    panel.rows::<V, 1>();
                    if panel.columns > LANES {
                        let right =
                            Multiply { b: panel.b.wrapping_add(LANES), sums: panel.sums.wrapping_add(LANES), ..panel };
                        right.rows::<V, 1>();
                    }
                }
            }
        }
    }
}

impl<E: Float> Multiply<f32, E> {
    /// All rows of `C` vectors of columns, as many at a time as the registers hold sums.
    #[inline(always)]
    unsafe fn rows<V: Lanes, const C: usize>(&self) {
        let mut r = 0;
        // SAFETY: tiles of rows that exist.
        unsafe {
            while r < self.rows {
                let rows = tile_rows(self.rows - r);
                r += match if V::WIDE { rows } else { rows.min(6) } {
                    12 => self.tile::<V, 12, C>(r),
                    8 => self.tile::<V, 8, C>(r),
                    6 => self.tile::<V, 6, C>(r),
                    4 => self.tile::<V, 4, C>(r),
                    2 => self.tile::<V, 2, C>(r),
                    _ => self.tile::<V, 1, C>(r),
                };
            }
        }
    }

    /// `R` rows of `C` vectors of columns, and how many they are.
    #[inline(always)]
    unsafe fn tile<V: Lanes, const R: usize, const C: usize>(&self, row: usize) -> usize {
        let sums = |i: usize, c: usize| self.sums.wrapping_add((row + i) * self.pitch + c * LANES);
        let mut acc = [[V::splat(0.0); C]; R];
        if !self.first {
            for (i, acc) in acc.iter_mut().enumerate() {
                for (c, acc) in acc.iter_mut().enumerate() {
                    // SAFETY: the sums of this tile.
                    *acc = unsafe { V::load(sums(i, c)) };
                }
            }
        }
        let a = self.a.wrapping_add(row * LINE);
        let mut from = self.b;
        for l in 0..self.depth {
            let mut b = [V::splat(0.0); C];
            for (c, b) in b.iter_mut().enumerate() {
                // SAFETY: a row of the panel.
                *b = unsafe { E::load(from.add(c * LANES)) };
            }
            from = from.wrapping_offset(self.down);
            for (i, acc) in acc.iter_mut().enumerate() {
                // SAFETY: an element of a row of a.
                let x = V::splat(unsafe { *a.add(i * LINE + l) });
                for (acc, b) in acc.iter_mut().zip(b) {
                    *acc = x.fma(b, *acc);
                }
            }
        }
        for (i, acc) in acc.into_iter().enumerate() {
            for (c, acc) in acc.into_iter().enumerate() {
                // SAFETY: the sums of this tile.
                unsafe { acc.store(sums(i, c)) };
            }
        }
        R
    }
}
