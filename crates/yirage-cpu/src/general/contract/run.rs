//! How a piece is computed: which blocks are packed, multiplied and finished, in which order.

use super::float::with_float;
use super::pack::Pack;
use super::pairs::{PackPairs, Pair, PairsOfPanel, PairsOfRow, Range, Rows};
use super::split::{DEPTH, LINE, PANEL, Piece};
use super::sweep::Sweep;
use super::tile::Multiply;
use super::{Contract, Fused};
use crate::general::{Elem, Input, Output, Sizes, Strides, map};
use crate::isa::Isa;
use crate::simd::{LANES, launch};
use yirage_ir::expr::MAX_INPUTS;

/// Elements of a matrix from one of them on.
#[derive(Clone, Copy)]
pub(super) struct Corner {
    pub(super) matrix: usize,
    pub(super) row: usize,
    pub(super) column: usize,
    /// Which of the strides is the rows'.
    pub(super) down: usize,
}

/// A block that lies packed in a cache: row r begins at `x + r * pitch`.
#[derive(Clone, Copy)]
pub(super) struct Cached {
    pub(super) corner: Corner,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) x: *const f32,
    pub(super) pitch: usize,
}

/// Packed blocks of a piece, and its sums.
struct Blocks<'a> {
    left: &'a mut [f32],
    right: &'a mut [f32],
    sums: &'a mut [f32],
    pitch: usize,
    rows: usize,
    columns: usize,
    depth: usize,
    first: bool,
}

impl Blocks<'_> {
    /// The blocks as numbers of this type, of which there are `depth` along k.
    fn of<E>(self, depth: usize) -> Multiply<E> {
        let Blocks { pitch, rows, columns, first, .. } = self;
        let (a, b, sums) = (self.left.as_ptr().cast(), self.right.as_ptr().cast(), self.sums.as_mut_ptr());
        Multiply { a, b, panel: DEPTH * PANEL, sums, pitch, rows, columns, depth, first }
    }

    fn multiply(self, isa: Isa) {
        let depth = self.depth;
        launch(isa, self.of::<f32>(depth));
    }

    /// The rows of a.
    fn of_a(&mut self) -> Rows {
        Rows { x: self.left.as_mut_ptr(), pitch: LINE, rows: self.rows, columns: self.depth }
    }

    /// The rows of each panel of b, as far as they are packed.
    fn of_b(&mut self) -> impl Iterator<Item = Rows> {
        let (rows, all) = (self.depth, self.columns);
        let panels = self.right.chunks_mut(DEPTH * PANEL).zip((0..all).step_by(PANEL));
        panels.map(move |(panel, first)| {
            let columns = PANEL.min((all - first).next_multiple_of(LANES));
            Rows { x: panel.as_mut_ptr(), pitch: PANEL, rows, columns }
        })
    }

    /// Multiplies blocks of pairs.
    fn multiply_pairs(self, isa: Isa) {
        let depth = self.depth.div_ceil(2);
        let multiply = self.of::<Pair>(depth);
        assert!(isa.available(), "a kernel was called for {isa}, which this processor lacks");
        // SAFETY: `Contract::has_pairs` has said that the level multiplies pairs; the blocks are those of the piece.
        unsafe { multiply.run_pairs() };
    }
}

/// Strides of a block.
fn flat(down: i64, across: i64) -> Strides {
    Strides::new(&[down, across]).unwrap_or_else(|_| unreachable!("two dimensions"))
}

impl Contract<'_> {
    /// A corner of a piece of the result.
    pub(super) fn corner(&self, piece: &Piece) -> Corner {
        Corner { matrix: piece.matrix, row: piece.rows.start, column: piece.columns.start, down: self.down }
    }

    /// An operand from a corner on: bytes from its first element, and the strides of rows and columns.
    fn from(&self, elem: Elem, strides: &Strides, corner: Corner) -> (isize, i64, i64) {
        let strides = strides.as_slice();
        let (down, across) = (strides[corner.down], strides[self.product.batch.len() + 1]);
        let mut at = corner.row as i64 * down + corner.column as i64 * across;
        let mut left = corner.matrix;
        for (&size, stride) in self.product.batch.iter().zip(strides).take(self.rank).rev() {
            at += (left % size) as i64 * stride;
            left /= size;
        }
        (at as isize * elem.bytes() as isize, down, across)
    }

    /// A matrix of an input from a corner on.
    fn input(&self, x: &Input, corner: Corner) -> Input {
        let (bytes, down, across) = self.from(x.elem, &x.strides, corner);
        Input::at(x.base.wrapping_byte_offset(bytes), x.elem, flat(down, across))
    }

    /// A matrix of the result from a corner on.
    pub(super) fn output(&self, corner: Corner) -> Output {
        let Output { base, elem, strides } = self.product.out;
        let (bytes, down, across) = self.from(elem, &strides, corner);
        Output::at(base.wrapping_byte_offset(bytes), elem, flat(down, across))
    }

    /// A piece of few rows.
    ///
    /// # Safety
    /// As for [`super::contract`], which has checked the scratch.
    pub(super) unsafe fn stream(&self, isa: Isa, piece: &Piece, scratch: &mut [f32]) {
        let (rows, columns) = (piece.rows.len(), piece.columns.len());
        let (left, sums) = scratch.split_at_mut(rows * LINE);
        let pitch = columns.next_multiple_of(PANEL);
        sums[..rows * pitch].fill(0.0);
        // SAFETY: the piece's sums.
        unsafe { self.begin(isa, piece, sums, pitch) };
        for l in (0..self.product.k).step_by(DEPTH) {
            let depth = DEPTH.min(self.product.k - l);
            // SAFETY: the rows lie in b, the block in a and in the scratch.
            unsafe { self.pack_left(isa, piece, l, depth, left) };
            let b = self.input(&self.product.b, self.corner_of_right(piece, l));
            with_float!(b.elem, E => launch(isa, Sweep {
                a: left.as_ptr(),
                line: LINE,
                b: b.base.cast::<E>(),
                down: b.strides.as_slice()[0] as isize,
                sums: sums.as_mut_ptr(),
                pitch,
                rows,
                columns,
                depth,
            }));
        }
        // SAFETY: the piece's sums.
        unsafe { self.finish(isa, piece, sums, pitch) };
    }

    /// A piece whose factors are packed.
    ///
    /// # Safety
    /// As for [`super::contract`], which has checked the scratch.
    pub(super) unsafe fn packed(&self, isa: Isa, piece: &Piece, scratch: &mut [f32]) {
        let (rows, columns) = (piece.rows.len(), piece.columns.len());
        let pitch = columns.next_multiple_of(PANEL);
        let (left, scratch) = scratch.split_at_mut(rows * LINE);
        let (right, sums) = scratch.split_at_mut(pitch * DEPTH);
        if self.product.k == 0 || self.product.goes_on {
            sums[..rows * pitch].fill(0.0);
        }
        // SAFETY: the piece's sums.
        unsafe { self.begin(isa, piece, sums, pitch) };
        let mut range = self.has_pairs(isa).then_some(Range::EMPTY);
        if let (Some(range), true) = (&mut range, self.product.goes_on) {
            range.meet_sums(launch(isa, Rows { x: sums.as_mut_ptr(), pitch, rows, columns }));
        }
        for l in (0..self.product.k).step_by(DEPTH) {
            let depth = DEPTH.min(self.product.k - l);
            // SAFETY: the blocks lie in a and b, and in the scratch.
            unsafe {
                self.pack_left(isa, piece, l, depth, left);
                let first = l == 0 && !self.product.goes_on;
                let mut blocks = Blocks { left, right, sums, pitch, rows, columns, depth, first };
                let in_pairs = match &mut range {
                    Some(range) => self.pair_blocks(isa, piece, l, &mut blocks, range),
                    None => false,
                };
                if in_pairs {
                    blocks.multiply_pairs(isa);
                } else {
                    self.pack_right(isa, piece, l, depth, blocks.right);
                    blocks.multiply(isa);
                }
            }
        }
        // SAFETY: the piece's sums.
        unsafe { self.finish(isa, piece, sums, pitch) };
    }

    /// Packs the block of b and makes pairs of both, unless the products of these blocks or of those before are others two
    /// at a time.
    ///
    /// # Safety
    /// As for [`Contract::packed`].
    unsafe fn pair_blocks(
        &self,
        isa: Isa,
        piece: &Piece,
        l: usize,
        blocks: &mut Blocks<'_>,
        range: &mut Range,
    ) -> bool {
        range.meet_a(launch(isa, blocks.of_a()));
        let at_once = self.lies_in_rows() && self.product.b.elem == Elem::BF16;
        if at_once {
            let b = self.input(&self.product.b, self.corner_of_right(piece, l));
            let pack = PackPairs {
                from: b.base.cast(),
                down: b.strides.as_slice()[0] as isize,
                rows: blocks.depth,
                columns: blocks.columns,
                into: blocks.right.as_mut_ptr().cast(),
                panel: DEPTH * PANEL,
            };
            range.meet_b(launch(isa, pack));
        } else {
            // SAFETY: as promised by the caller.
            unsafe { self.pack_right(isa, piece, l, blocks.depth, blocks.right) };
            blocks.of_b().for_each(|panel| range.meet_b(launch(isa, panel)));
        }
        if range.is_plain() {
            launch(isa, PairsOfRow(blocks.of_a()));
            if !at_once {
                blocks.of_b().for_each(|panel| launch(isa, PairsOfPanel(panel)));
            }
        }
        range.is_plain()
    }

    /// Row `l` of b at the piece's columns.
    fn corner_of_right(&self, piece: &Piece, l: usize) -> Corner {
        Corner { matrix: piece.matrix, row: l, column: piece.columns.start, down: self.product.batch.len() }
    }

    /// Packs `depth` columns of a from `l` on, of the piece's rows.
    unsafe fn pack_left(&self, isa: Isa, piece: &Piece, l: usize, depth: usize, into: &mut [f32]) {
        let (corner, rows) = (Corner { column: l, ..self.corner(piece) }, piece.rows.len());
        let block = Cached { corner, rows, columns: depth, x: into.as_ptr(), pitch: LINE };
        // SAFETY: as promised by the caller; the block is one panel.
        unsafe {
            self.pack(isa, &self.product.a, block, 0, into);
            self.change(isa, self.product.left, block, into.as_mut_ptr());
        }
    }

    /// Packs `depth` rows of b from `l` on, of the piece's columns.
    unsafe fn pack_right(&self, isa: Isa, piece: &Piece, l: usize, depth: usize, into: &mut [f32]) {
        let (corner, columns) = (self.corner_of_right(piece, l), piece.columns.len());
        let block = Cached { corner, rows: depth, columns, x: into.as_ptr(), pitch: PANEL };
        // SAFETY: as promised by the caller.
        unsafe { self.pack(isa, &self.product.b, block, DEPTH * PANEL, into) };
        for c in (0..columns).step_by(PANEL) {
            let corner = Corner { column: corner.column + c, ..corner };
            let x = into[c * DEPTH..].as_mut_ptr();
            let panel = Cached { corner, columns: PANEL.min(columns - c), x, ..block };
            // SAFETY: as promised by the caller.
            unsafe { self.change(isa, self.product.right, panel, x) };
        }
    }

    /// Packs a block of an operand, in panels as wide as the pitch.
    unsafe fn pack(&self, isa: Isa, from: &Input, block: Cached, panel: usize, into: &mut [f32]) {
        let from = self.input(from, block.corner);
        let [down, across] = [0, 1].map(|axis| from.strides.as_slice()[axis] as isize);
        let (rows, columns, width, into) = (block.rows, block.columns, block.pitch, into.as_mut_ptr());
        with_float!(from.elem, E => {
            let from = from.base.cast::<E>();
            launch(isa, Pack { from, down, across, rows, columns, into, width, panel });
        });
    }

    /// Puts a program's values in place of a block's elements.
    unsafe fn change(&self, isa: Isa, fused: Option<Fused<'_>>, block: Cached, x: *mut f32) {
        let Some(fused) = fused else { return };
        let to = Output::at(x.cast(), Elem::F32, flat(block.pitch as i64, 1));
        // SAFETY: as promised by the caller: the block was just packed, into scratch that is this worker's alone.
        unsafe { self.through(isa, fused, block, to) };
    }

    /// Puts a program's values of a block's elements into `to`.
    ///
    /// # Safety
    /// The block's elements exist, in the program's other inputs too, and at `to`, where they are the caller's alone.
    pub(super) unsafe fn through(&self, isa: Isa, fused: Fused<'_>, block: Cached, to: Output) {
        let mut inputs = [Input::at(block.x.cast(), Elem::F32, flat(block.pitch as i64, 1)); MAX_INPUTS];
        for (to, from) in inputs[1..].iter_mut().zip(fused.others) {
            *to = self.input(from, block.corner);
        }
        let (inputs, all) = (&inputs[..=fused.others.len()], block.rows * block.columns);
        let sizes = Sizes::new(&[block.rows, block.columns]);
        let sizes = sizes.unwrap_or_else(|_| unreachable!("a part of sizes that were checked"));
        // SAFETY: as promised by the caller; `Product::check` has checked the types.
        unsafe { map(isa, fused.program, &sizes, inputs, to, 0..all) };
    }
}
