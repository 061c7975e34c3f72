//! Products of matrices, a batch of them, of any strides and float type.
//!
//! `y[i, j] = sum_l a[i, l] * b[l, j]`, each element one chain of f32 fused multiply-adds over l, ascending, from 0,
//! rounded once to the type that it is stored as. Which tile, block, level or worker an element falls to changes no bit.
//! [`Program`]s change elements of a or b while they are packed, and elements of y before they are stored.

mod finish;
mod float;
mod pack;
mod split;
mod sweep;
mod tile;

pub(crate) use sweep::Sweep;

use super::{Elem, Held, Input, Output, Sizes};
use crate::isa::Isa;
use crate::simd::launch;
use float::with_float;
use pack::Pack;
use split::{DEPTH, FEW, LINE, PANEL, Piece, Split, Way};
use std::ops::Range;
use thiserror::Error;
use tile::Multiply;
use yirage_ir::types::MAX_RANK;

/// A block of the matrices of a batch, one matrix below the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The first row; rows are counted through all matrices of the product's batch.
    pub row: usize,
    /// The first column.
    pub column: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

/// An element-wise program on elements that are held as f32 in the first cache levels.
pub trait Program: Sync {
    /// Puts its values in place of the elements: that of row `r` and column `c` of the block is `x[r * pitch + c]`.
    ///
    /// # Safety
    /// The elements exist and are the caller's alone; so do those of the program's other inputs.
    unsafe fn run(&self, isa: Isa, block: Block, x: *mut f32, pitch: usize);
}

/// A product, as it is asked for.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    /// Sizes of the batch, which all strides begin with.
    pub batch: &'a [usize],
    /// Rows of a and of y.
    pub m: usize,
    /// Columns of a, rows of b.
    pub k: usize,
    /// Columns of b and of y.
    pub n: usize,
    /// Strides along the batch, m and k.
    pub a: Input,
    /// Strides along the batch, k and n.
    pub b: Input,
    /// Strides along the batch, m and n.
    pub out: Output,
    /// Makes the left side of a's elements.
    pub left: Option<&'a dyn Program>,
    /// Makes the right side of b's elements.
    pub right: Option<&'a dyn Program>,
    /// Makes what is stored of the product's elements, which are rounded to a type before.
    pub after: Option<(Elem, &'a dyn Program)>,
    /// How many workers share it.
    pub workers: usize,
}

/// Why a product cannot be computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ContractError {
    /// The sizes are too many, or too large.
    #[error(transparent)]
    Sizes(#[from] super::OperandError),
    /// An operand without a stride for each dimension, or with more.
    #[error("{operand} has {strides} strides: {wanted} are wanted, the batch's and those of a matrix")]
    Strides {
        /// Which one.
        operand: &'static str,
        /// How many it has.
        strides: usize,
        /// How many are wanted.
        wanted: usize,
    },
    /// An operand of whole numbers.
    #[error("elements of {0} are {1:?}: floats are wanted")]
    NoFloat(&'static str, Elem),
}

/// An operand: where its matrices begin, and how they lie.
#[derive(Clone, Copy)]
struct Matrices {
    base: *mut u8,
    elem: Elem,
    batch: [isize; MAX_RANK],
    down: isize,
    across: isize,
}

/// A product that has been checked and cut into pieces.
pub struct Contract<'a> {
    product: Product<'a>,
    sizes: [usize; MAX_RANK],
    rank: usize,
    m: usize,
    a: Matrices,
    b: Matrices,
    out: Matrices,
    split: Split,
}

// SAFETY: addresses; `contract` says who may touch what.
unsafe impl Send for Contract<'_> {}
// SAFETY: as above.
unsafe impl Sync for Contract<'_> {}

impl Matrices {
    /// # Errors
    /// Strides that do not fit the batch, elements that are no floats.
    fn new(
        name: &'static str,
        rank: usize,
        base: *mut u8,
        elem: Elem,
        strides: &[i64],
    ) -> Result<Matrices, ContractError> {
        if elem.held() != Held::Float {
            return Err(ContractError::NoFloat(name, elem));
        }
        let uneven = ContractError::Strides { operand: name, strides: strides.len(), wanted: rank + 2 };
        let [outer @ .., down, across] = strides else { return Err(uneven) };
        if outer.len() != rank {
            return Err(uneven);
        }
        let mut batch = [0; MAX_RANK];
        for (to, from) in batch.iter_mut().zip(outer) {
            *to = *from as isize;
        }
        Ok(Matrices { base, elem, batch, down: *down as isize, across: *across as isize })
    }

    /// The address of an element of a matrix.
    fn at(&self, matrix: isize, row: usize, column: usize) -> *mut u8 {
        let elements = matrix + row as isize * self.down + column as isize * self.across;
        self.base.wrapping_byte_offset(elements * self.elem.bytes() as isize)
    }
}

impl<'a> Contract<'a> {
    /// Checks the product and cuts it.
    ///
    /// # Errors
    /// [`ContractError`].
    pub fn new(product: Product<'a>) -> Result<Contract<'a>, ContractError> {
        let Product { batch, m, k, n, a, b, out, .. } = product;
        let rank = batch.len();
        for matrix in [[m, k], [k, n], [m, n]] {
            Sizes::new(&[batch, &matrix].concat())?;
        }
        let mut sizes = [1; MAX_RANK];
        sizes[..rank].copy_from_slice(batch);
        let mut contract = Contract {
            product,
            sizes,
            rank,
            m,
            a: Matrices::new("a", rank, a.base.cast_mut(), a.elem, a.strides.as_slice())?,
            b: Matrices::new("b", rank, b.base.cast_mut(), b.elem, b.strides.as_slice())?,
            out: Matrices::new("the result", rank, out.base, out.elem, out.strides.as_slice())?,
            split: Split::new(Way::Packed, 0, 0, 0, 1),
        };
        contract.fold();
        let streams = contract.b.across == 1 && product.right.is_none() && contract.m <= FEW;
        let way = if streams { Way::Stream } else { Way::Packed };
        let matrices = contract.sizes[..contract.rank].iter().product();
        contract.split = Split::new(way, matrices, contract.m, n, product.workers);
        Ok(contract)
    }

    /// Makes one matrix of those that the innermost dimensions of the batch multiply with the same right side.
    fn fold(&mut self) {
        while let Some(last) = self.rank.checked_sub(1) {
            let size = self.sizes[last];
            // A step from the last row of a matrix to the first one of the next is as long as one inside of it.
            let goes_on = |x: &Matrices| self.m == 1 || x.batch[last] == x.down.wrapping_mul(self.m as isize);
            let shared = self.b.batch[last] == 0 && self.product.right.is_none();
            if size != 1 && !(shared && goes_on(&self.a) && goes_on(&self.out)) {
                return;
            }
            if size != 1 && self.m == 1 {
                (self.a.down, self.out.down) = (self.a.batch[last], self.out.batch[last]);
            }
            self.m *= size;
            self.rank = last;
        }
    }

    /// Disjoint parts of the work, in any order and by any worker each.
    pub fn pieces(&self) -> usize {
        self.split.pieces
    }

    /// Bytes of scratch that a worker needs for a product of `[m, k]` and `[k, n]` or anything smaller. The scratch
    /// begins at a multiple of 64.
    pub fn scratch_bytes(m: usize, n: usize) -> usize {
        split::scratch_floats(m, n) * size_of::<f32>()
    }
}

/// Computes some pieces.
///
/// # Panics
/// When the pieces do not exist, the level is not there, or the scratch is too small or misaligned.
///
/// # Safety
/// All elements of the operands exist for the product's sizes and strides, the result's are distinct and overlap neither
/// a nor b. Nobody else touches the result's elements of these pieces, or the scratch.
pub unsafe fn contract(isa: Isa, call: &Contract<'_>, pieces: Range<usize>, scratch: &mut [f32]) {
    assert!(pieces.end <= call.split.pieces, "pieces {pieces:?} of {}", call.split.pieces);
    assert!(
        scratch.len() >= call.split.floats(),
        "{} floats of scratch: {} wanted",
        scratch.len(),
        call.split.floats()
    );
    for piece in pieces.map(|i| call.split.piece(i)) {
        // SAFETY: `Split::piece` keeps pieces disjoint and inside of the output; the rest is promised by the caller.
        unsafe {
            match call.split.way {
                Way::Stream => call.stream(isa, &piece, scratch),
                Way::Packed => call.packed(isa, &piece, scratch),
            }
        }
    }
}

impl Contract<'_> {
    /// Where the matrices of a batch begin, in elements: a's, b's and the result's.
    fn matrix(&self, index: usize) -> [isize; 3] {
        let mut left = index;
        let mut at = [0; 3];
        for axis in (0..self.rank).rev() {
            let i = (left % self.sizes[axis]) as isize;
            left /= self.sizes[axis];
            for (at, x) in at.iter_mut().zip([&self.a, &self.b, &self.out]) {
                *at += i * x.batch[axis];
            }
        }
        at
    }

    /// A piece of few rows.
    unsafe fn stream(&self, isa: Isa, piece: &Piece, scratch: &mut [f32]) {
        let (rows, columns) = (piece.rows.len(), piece.columns.len());
        let (left, sums) = scratch.split_at_mut(rows * LINE);
        let pitch = columns.next_multiple_of(PANEL);
        sums[..rows * pitch].fill(0.0);
        let [a, b, _] = self.matrix(piece.matrix);
        for l in (0..self.product.k).step_by(DEPTH) {
            let depth = DEPTH.min(self.product.k - l);
            // SAFETY: the block lies in a, and in the scratch, which `contract` has checked; so do the rows of b.
            unsafe {
                self.pack_left(isa, piece, a, l, depth, left);
                with_float!(self.b.elem, E => launch(isa, Sweep {
                    a: left.as_ptr(),
                    line: LINE,
                    b: self.b.at(b, l, piece.columns.start).cast::<E>().cast_const(),
                    down: self.b.down,
                    sums: sums.as_mut_ptr(),
                    pitch,
                    rows,
                    columns,
                    depth,
                }));
            }
        }
        // SAFETY: the piece's sums.
        unsafe { self.finish(isa, piece, sums, pitch) };
    }

    /// A piece whose factors are packed.
    unsafe fn packed(&self, isa: Isa, piece: &Piece, scratch: &mut [f32]) {
        let (rows, columns) = (piece.rows.len(), piece.columns.len());
        let pitch = columns.next_multiple_of(PANEL);
        let (left, scratch) = scratch.split_at_mut(rows * LINE);
        let (right, sums) = scratch.split_at_mut(pitch * DEPTH);
        if self.product.k == 0 {
            sums[..rows * pitch].fill(0.0);
        }
        let [a, b, _] = self.matrix(piece.matrix);
        for l in (0..self.product.k).step_by(DEPTH) {
            let depth = DEPTH.min(self.product.k - l);
            // SAFETY: the blocks lie in a and b, and in the scratch, which `contract` has checked.
            unsafe {
                self.pack_left(isa, piece, a, l, depth, left);
                self.pack_right(isa, piece, b, l, depth, right);
            }
            let (a, b, sums) = (left.as_ptr(), right.as_ptr(), sums.as_mut_ptr());
            let (panel, first) = (DEPTH * PANEL, l == 0);
            launch(isa, Multiply { a, b, panel, sums, pitch, rows, columns, depth, first });
        }
        // SAFETY: the piece's sums.
        unsafe { self.finish(isa, piece, sums, pitch) };
    }

    /// Packs `depth` columns of a from `l` on, of the piece's rows.
    unsafe fn pack_left(&self, isa: Isa, piece: &Piece, matrix: isize, l: usize, depth: usize, into: &mut [f32]) {
        let (rows, into) = (piece.rows.len(), into.as_mut_ptr());
        with_float!(self.a.elem, E => launch(isa, Pack {
            from: self.a.at(matrix, piece.rows.start, l).cast::<E>().cast_const(),
            down: self.a.down,
            across: self.a.across,
            rows,
            columns: depth,
            into,
            width: LINE,
            line: LINE,
            panel: 0,
        }));
        if let Some(program) = self.product.left {
            let block = Block { row: piece.matrix * self.m + piece.rows.start, column: l, rows, columns: depth };
            // SAFETY: the elements were just packed, into scratch that is this worker's alone.
            unsafe { program.run(isa, block, into, LINE) };
        }
    }

    /// Packs `depth` rows of b from `l` on, of the piece's columns.
    unsafe fn pack_right(&self, isa: Isa, piece: &Piece, matrix: isize, l: usize, depth: usize, into: &mut [f32]) {
        let (columns, into) = (piece.columns.len(), into.as_mut_ptr());
        with_float!(self.b.elem, E => launch(isa, Pack {
            from: self.b.at(matrix, l, piece.columns.start).cast::<E>().cast_const(),
            down: self.b.down,
            across: self.b.across,
            rows: depth,
            columns,
            into,
            width: PANEL,
            line: PANEL,
            panel: DEPTH * PANEL,
        }));
        let Some(program) = self.product.right else { return };
        for c in (0..columns).step_by(PANEL) {
            let block = Block {
                row: piece.matrix * self.product.k + l,
                column: piece.columns.start + c,
                rows: depth,
                columns: PANEL.min(columns - c),
            };
            // SAFETY: as above.
            unsafe { program.run(isa, block, into.add(c * DEPTH), PANEL) };
        }
    }
}
