//! Products whose right side stays: it is packed once, as f32 in panels, for all products that follow and read the same.
//!
//! Each element of the result is the chain of additions of [`super::contract`]: f32 fused multiply-adds over l, ascending,
//! from 0. So the bits are the same, whichever of both computes it.

use super::contract::Product;
use super::convert::{read, write};
use super::{Input, Output, Sizes, Strides, map};
use crate::isa::Isa;
use crate::simd::{LANES, Lanes, WithLanes, launch};
use yirage_ir::expr::MAX_INPUTS;

/// Columns of a panel: two vectors.
const PANEL: usize = 2 * LANES;
/// Elements along k of the left side that are packed at once.
const DEPTH: usize = 128;
/// From row to row of the packed left side. Not a power of two, so that rows do not meet in few cache sets.
const LINE: usize = DEPTH + LANES;
/// Rows that are packed at once: a multiple of every register tile, for which a panel stays in the first-level cache.
const ROWS: usize = 48;
/// Columns of sums that wait at once.
const COLUMNS: usize = 256;

/// Floats of scratch that a worker needs.
pub const SCRATCH: usize = ROWS * (LINE + COLUMNS);

/// Floats of the packed right sides of a product, of so many matrices; none where that is no number.
pub fn packed_floats(matrices: usize, k: usize, n: usize) -> Option<usize> {
    n.checked_next_multiple_of(PANEL)?.checked_mul(k)?.checked_mul(matrices)
}

/// Computes a product whose right side is packed in `right`, where it is packed before if it is not `there`.
///
/// # Panics
/// If `right` or `scratch` is smaller than [`packed_floats`] and [`SCRATCH`] say.
///
/// # Safety
/// As for [`super::contract::contract`], whose `Contract::new` has taken the product, which neither changes its right side
/// nor goes on from sums. If it is `there`, `right` is as a call for an equal right side has left it.
pub unsafe fn multiply(isa: Isa, product: &Product<'_>, right: &mut [f32], there: bool, scratch: &mut [f32]) {
    let Product { batch, m, k, n, .. } = *product;
    let matrices: usize = batch.iter().product();
    let each = k * n.next_multiple_of(PANEL);
    assert!(right.len() >= matrices * each && scratch.len() >= SCRATCH, "too little room for a packed product");
    let (left, sums) = scratch.split_at_mut(ROWS * LINE);
    for matrix in 0..matrices {
        let right = &mut right[matrix * each..][..each];
        let part = Part { product, matrix, right, left, sums };
        launch(isa, Packed { isa, part, there, rows: m });
    }
}

/// A matrix of the batch, and where its blocks are packed.
struct Part<'a, 'p> {
    product: &'a Product<'p>,
    matrix: usize,
    right: &'a mut [f32],
    left: &'a mut [f32],
    sums: &'a mut [f32],
}

struct Packed<'a, 'p> {
    isa: Isa,
    part: Part<'a, 'p>,
    there: bool,
    rows: usize,
}

impl WithLanes for Packed<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(mut self) {
        let Product { k, n, .. } = *self.part.product;
        // SAFETY: the contract of `multiply`: all elements exist, and the result's are the caller's alone.
        unsafe {
            if !self.there {
                self.part.pack_right::<V>();
            }
            for row in (0..self.rows).step_by(ROWS) {
                let rows = ROWS.min(self.rows - row);
                for column in (0..n).step_by(COLUMNS) {
                    let columns = COLUMNS.min(n - column);
                    if k == 0 {
                        self.part.sums.fill(0.0);
                    }
                    for l in (0..k).step_by(DEPTH) {
                        let depth = DEPTH.min(k - l);
                        // What is not deeper than a block is packed for the first columns and stays.
                        if column == 0 || k > DEPTH {
                            self.part.pack_left::<V>(self.isa, (row, rows), (l, depth));
                        }
                        self.part.block::<V>(rows, (column, columns), (l, depth));
                    }
                    self.part.finish::<V>(self.isa, (row, rows), (column, columns));
                }
            }
        }
    }
}

impl Part<'_, '_> {
    /// Elements from an operand's first to one of this matrix.
    fn offset(&self, strides: &Strides, row: usize, column: usize) -> isize {
        let (strides, batch) = (strides.as_slice(), self.product.batch);
        let mut at = row as i64 * strides[batch.len()] + column as i64 * strides[batch.len() + 1];
        let mut left = self.matrix;
        for (&size, stride) in batch.iter().zip(strides).rev() {
            at += (left % size) as i64 * stride;
            left /= size;
        }
        at as isize
    }

    fn from(&self, x: &Input, row: usize, column: usize) -> *const u8 {
        x.base.wrapping_byte_offset(self.offset(&x.strides, row, column) * x.elem.bytes() as isize)
    }

    /// Strides of rows and columns of an operand.
    fn matrix(&self, strides: &Strides) -> [i64; 2] {
        let at = self.product.batch.len();
        [strides.as_slice()[at], strides.as_slice()[at + 1]]
    }

    /// Rows of b as they lie, each to all panels.
    ///
    /// # Safety
    /// The elements of b exist.
    #[inline(always)]
    unsafe fn pack_right<V: Lanes>(&mut self) {
        let Product { k, n, b, .. } = *self.product;
        let across = self.matrix(&b.strides)[1];
        for l in 0..k {
            for column in (0..n).step_by(PANEL) {
                let to = self.right[column * k + l * PANEL..][..PANEL].as_mut_ptr();
                // SAFETY: the contract; a row of a panel is two vectors.
                unsafe { read::<V>(b.elem, self.from(&b, l, column), across, PANEL.min(n - column), to) };
            }
        }
    }

    /// A block of a, through its program.
    ///
    /// # Safety
    /// The elements of a and of the program's other inputs exist.
    #[inline(always)]
    unsafe fn pack_left<V: Lanes>(&mut self, isa: Isa, (row, rows): (usize, usize), (l, depth): (usize, usize)) {
        let Product { a, left, .. } = *self.product;
        let across = self.matrix(&a.strides)[1];
        for r in 0..rows {
            let to = self.left[r * LINE..][..LINE].as_mut_ptr();
            // SAFETY: the contract; a line has room for a block's depth.
            unsafe { read::<V>(a.elem, self.from(&a, row + r, l), across, depth, to) };
        }
        if let Some(fused) = left {
            let x = self.left.as_mut_ptr();
            let block = Input::at(x.cast_const().cast(), super::Elem::F32, flat([LINE as i64, 1]));
            let to = Output::at(x.cast(), super::Elem::F32, flat([LINE as i64, 1]));
            // SAFETY: the contract; the block was just packed.
            unsafe { self.through(isa, fused, block, to, [row, l], [rows, depth]) };
        }
    }

    /// Puts a program's values of some elements into `to`.
    ///
    /// # Safety
    /// The elements exist in the block, in the program's other inputs and at `to`.
    unsafe fn through(
        &self,
        isa: Isa,
        fused: super::contract::Fused<'_>,
        block: Input,
        to: Output,
        [row, column]: [usize; 2],
        sizes: [usize; 2],
    ) {
        let mut inputs = [block; MAX_INPUTS];
        for (input, x) in inputs[1..].iter_mut().zip(fused.others) {
            *input = Input::at(self.from(x, row, column), x.elem, flat(self.matrix(&x.strides)));
        }
        let all = sizes.iter().product();
        let sizes = Sizes::new(&sizes).unwrap_or_else(|_| unreachable!("a part of sizes that were checked"));
        // SAFETY: the contract; `Contract::new` has checked the types.
        unsafe { map(isa, fused.program, &sizes, &inputs[..=fused.others.len()], to, 0..all) };
    }

    /// Multiplies the packed rows with some columns of the packed right side.
    ///
    /// # Safety
    /// Both are packed.
    #[inline(always)]
    unsafe fn block<V: Lanes>(&mut self, rows: usize, (column, columns): (usize, usize), (l, depth): (usize, usize)) {
        let k = self.product.k;
        for c in (0..columns).step_by(PANEL) {
            let tile = Tile {
                a: self.left.as_ptr(),
                b: self.right[(column + c) * k + l * PANEL..][..depth * PANEL].as_ptr(),
                sums: self.sums[c..].as_mut_ptr(),
                depth,
                first: l == 0,
            };
            // SAFETY: rows of the left side and of sums, and a panel's rows.
            unsafe {
                if V::WIDE {
                    tile.rows::<V, 2>(rows);
                } else {
                    tile.rows::<V, 1>(rows);
                    let right = Tile { b: tile.b.wrapping_add(LANES), sums: tile.sums.wrapping_add(LANES), ..tile };
                    right.rows::<V, 1>(rows);
                }
            }
        }
    }

    /// Stores sums, or a program's values of them.
    ///
    /// # Safety
    /// The result's elements exist and are the caller's alone.
    #[inline(always)]
    unsafe fn finish<V: Lanes>(&mut self, isa: Isa, (row, rows): (usize, usize), (column, columns): (usize, usize)) {
        let Product { out, after, .. } = *self.product;
        let [down, across] = self.matrix(&out.strides);
        let first = self.offset(&out.strides, row, column) * out.elem.bytes() as isize;
        let base = out.base.wrapping_byte_offset(first);
        if let Some(fused) = after {
            let block = Input::at(self.sums.as_ptr().cast(), super::Elem::F32, flat([COLUMNS as i64, 1]));
            let to = Output::at(base, out.elem, flat([down, across]));
            // SAFETY: the contract; the sums are there.
            unsafe { self.through(isa, fused, block, to, [row, column], [rows, columns]) };
            return;
        }
        for r in 0..rows {
            let to = base.wrapping_byte_offset(r as isize * down as isize * out.elem.bytes() as isize);
            // SAFETY: the contract; a row of sums is a multiple of sixteen.
            unsafe { write::<V>(out.elem, self.sums[r * COLUMNS..][..COLUMNS].as_ptr(), to, across, columns) };
        }
    }
}

/// Strides of a block.
fn flat(strides: [i64; 2]) -> Strides {
    Strides::new(&strides).unwrap_or_else(|_| unreachable!("two dimensions"))
}

/// Rows of the packed left side times a panel.
#[derive(Clone, Copy)]
struct Tile {
    a: *const f32,
    b: *const f32,
    sums: *mut f32,
    depth: usize,
    /// Nothing was summed yet.
    first: bool,
}

impl Tile {
    /// All rows of `C` vectors of columns, as many at a time as the registers hold sums.
    #[inline(always)]
    unsafe fn rows<V: Lanes, const C: usize>(&self, rows: usize) {
        let mut r = 0;
        // SAFETY: tiles of rows that exist.
        unsafe {
            while r < rows {
                r += match rows - r {
                    12.. if V::WIDE => self.tile::<V, 12, C>(r),
                    8.. if V::WIDE => self.tile::<V, 8, C>(r),
                    6.. => self.tile::<V, 6, C>(r),
                    4.. => self.tile::<V, 4, C>(r),
                    2.. => self.tile::<V, 2, C>(r),
                    _ => self.tile::<V, 1, C>(r),
                };
            }
        }
    }

    /// `R` rows of `C` vectors of columns, and how many they are.
    #[inline(always)]
    unsafe fn tile<V: Lanes, const R: usize, const C: usize>(&self, row: usize) -> usize {
        let sums = |i: usize, c: usize| self.sums.wrapping_add((row + i) * COLUMNS + c * LANES);
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
        for l in 0..self.depth {
            let mut b = [V::splat(0.0); C];
            for (c, b) in b.iter_mut().enumerate() {
                // SAFETY: a row of the panel.
                *b = unsafe { V::load(self.b.add(l * PANEL + c * LANES)) };
            }
            for (i, acc) in acc.iter_mut().enumerate() {
                // SAFETY: an element of a row of the left side.
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
