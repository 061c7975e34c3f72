//! How a piece is computed: which blocks are packed, multiplied and finished, in which order.

use super::float::with_float;
use super::magnitudes::{ExponentLimits, Magnitudes, PackedBlockRows};
use super::pack::Pack;
use super::pairs::{Bf16Pair, Numbers, PairsOfPanel, PairsOfRow};
use super::split::{DEPTH, LINE, OutputBlock, PANEL, RUN, streamed_rows};
use super::tile::{Ahead, Multiply};
use super::{Contract, Fused};
use crate::general::{Elem, LoopSizes, StridedInput, StridedOutput, Strides, map};
use crate::isa::Isa;
use crate::simd::{LANES, launch};
use yirage_ir::expr::MAX_INPUTS;

/// Rows that a program makes at once: they stay in the first-level cache.
const PROLOGUE_ROWS: usize = 24;

// They lie in the place of a block of b, which has a panel at least.
const _: () = assert!(PROLOGUE_ROWS * LINE <= DEPTH * PANEL);

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

/// Blocks of a piece along some of k, and its sums.
#[derive(Clone, Copy)]
pub(super) struct PackedBlocks {
    /// The block of a, packed as numbers or as pairs.
    left: *mut f32,
    /// The block of b, or room for it.
    right: *mut f32,
    /// From panel to panel of b.
    panel: usize,
    sums: *mut f32,
    /// From row to row of the sums.
    pitch: usize,
    rows: usize,
    columns: usize,
    /// From this element along k on.
    pub(super) l: usize,
    pub(super) depth: usize,
    /// Nothing was summed yet.
    first: bool,
    /// Where the block of a is pairs: which blocks of b may be multiplied so.
    limits: Option<ExponentLimits>,
}

/// A block of a that was packed, and is still there for the next piece of the same rows.
pub(super) struct PackedLhs {
    matrix: usize,
    row: usize,
    /// Where it is pairs: which blocks of b may be multiplied so.
    limits: Option<ExponentLimits>,
}

impl PackedBlocks {
    /// Of nothing.
    const NONE: PackedBlocks = PackedBlocks {
        left: std::ptr::null_mut(),
        right: std::ptr::null_mut(),
        panel: DEPTH * PANEL,
        sums: std::ptr::null_mut(),
        pitch: 0,
        rows: 0,
        columns: 0,
        l: 0,
        depth: 0,
        first: true,
        limits: None,
    };

    /// Of a right side alone.
    pub(super) fn of_right(columns: usize, l: usize, depth: usize) -> PackedBlocks {
        PackedBlocks { columns, l, depth, ..PackedBlocks::NONE }
    }

    /// With the block of b there, each panel behind the one before.
    pub(super) fn beside(self, right: *mut f32) -> PackedBlocks {
        PackedBlocks { right, panel: self.depth * PANEL, ..self }
    }

    /// The products of both blocks packed, as numbers of this type, of which there are `depth` along k.
    fn of<E>(&self, depth: usize) -> Multiply<E, E> {
        let PackedBlocks { left, right, panel, sums, pitch, rows, columns, first, .. } = *self;
        let (a, b, down) = (left.cast_const().cast(), right.cast_const().cast(), PANEL as isize);
        Multiply { a, b, down, panel, sums, pitch, rows, columns, depth, first, ahead: Ahead::NONE }
    }

    /// The rows of a.
    fn of_a(&self) -> PackedBlockRows {
        PackedBlockRows { x: self.left, pitch: LINE, rows: self.rows, columns: self.depth }
    }

    /// The rows of each panel of b, as far as they are packed.
    fn of_b(&self) -> impl Iterator<Item = PackedBlockRows> + use<> {
        let PackedBlocks { right, panel, depth: rows, columns: all, .. } = *self;
        (0..all).step_by(PANEL).map(move |first| {
            let columns = PANEL.min((all - first).next_multiple_of(LANES));
            PackedBlockRows { x: right.wrapping_add(first / PANEL * panel), pitch: PANEL, rows, columns }
        })
    }
}

/// Strides of a block.
fn flat(down: i64, across: i64) -> Strides {
    Strides::new(&[down, across]).unwrap_or_else(|_| unreachable!("two dimensions"))
}

impl Contract<'_> {
    /// A corner of a piece of the result.
    pub(super) fn corner(&self, piece: &OutputBlock) -> Corner {
        Corner { matrix: piece.matrix, row: piece.rows.start, column: piece.columns.start, down: self.down }
    }

    /// An operand from a corner on: bytes from its first element, and the strides of rows and columns.
    fn from(&self, elem: Elem, strides: &Strides, corner: Corner) -> (isize, i64, i64) {
        let strides = strides.as_slice();
        let (down, across) = (strides[corner.down], strides[self.matmul.batch.len() + 1]);
        let mut at = corner.row as i64 * down + corner.column as i64 * across;
        let mut left = corner.matrix;
        for (&size, stride) in self.matmul.batch.iter().zip(strides).take(self.rank).rev() {
            at += (left % size) as i64 * stride;
            left /= size;
        }
        (at as isize * elem.bytes() as isize, down, across)
    }

    /// A matrix of an input from a corner on.
    fn input(&self, x: &StridedInput, corner: Corner) -> StridedInput {
        let (bytes, down, across) = self.from(x.elem, &x.strides, corner);
        StridedInput::at(x.base.wrapping_byte_offset(bytes), x.elem, flat(down, across))
    }

    /// A matrix of the result from a corner on.
    pub(super) fn output(&self, corner: Corner) -> StridedOutput {
        let StridedOutput { base, elem, strides } = self.matmul.out;
        let (bytes, down, across) = self.from(elem, &strides, corner);
        StridedOutput::at(base.wrapping_byte_offset(bytes), elem, flat(down, across))
    }

    /// A piece of few rows: whole panels of b are read as they lie, the columns behind them are packed.
    ///
    /// # Safety
    /// As for [`super::contract`], which has checked the scratch.
    pub(super) unsafe fn stream(
        &self,
        isa: Isa,
        piece: &OutputBlock,
        left: &mut Option<PackedLhs>,
        scratch: &mut [f32],
    ) {
        let whole = piece.columns.len() / PANEL * PANEL;
        let mut rest = piece.clone();
        rest.columns.start += whole;
        // SAFETY: what `Contract::stream` is promised; `StridedInput::within` and `StridedOutput::within` check the
        // operands, `contract` the scratch.
        unsafe {
            self.blocks(isa, piece, left, PANEL, scratch, |plain, mut blocks| {
                if whole > 0 {
                    self.as_it_lies(isa, piece, PackedBlocks { columns: whole, ..blocks }, plain);
                }
                if !*plain {
                    blocks.limits = None;
                }
                if !rest.columns.is_empty() {
                    let (sums, columns) = (blocks.sums.add(whole), rest.columns.len());
                    self.packed_blocks(isa, &rest, PackedBlocks { sums, columns, ..blocks }, plain);
                }
            });
        }
    }

    /// A piece whose factors are packed.
    ///
    /// # Safety
    /// As for [`super::contract`], which has checked the scratch.
    pub(super) unsafe fn packed(
        &self,
        isa: Isa,
        piece: &OutputBlock,
        left: &mut Option<PackedLhs>,
        scratch: &mut [f32],
    ) {
        let columns = piece.columns.len().next_multiple_of(PANEL);
        // SAFETY: what `Contract::packed` is promised; `StridedInput::within` and `StridedOutput::within` check the
        // operands, `contract` the scratch.
        unsafe {
            self.blocks(isa, piece, left, columns, scratch, |plain, blocks| {
                self.packed_blocks(isa, piece, blocks, plain)
            });
        }
    }

    /// Sums up a piece, block after block along k: what `multiply` does with each, which is also told and tells whether
    /// pairs may be multiplied.
    ///
    /// # Safety
    /// As for [`super::contract`]; the scratch has room for packed blocks of a and of `right` columns of b, and for the sums.
    unsafe fn blocks(
        &self,
        isa: Isa,
        piece: &OutputBlock,
        there: &mut Option<PackedLhs>,
        right: usize,
        scratch: &mut [f32],
        multiply: impl Fn(&mut bool, PackedBlocks),
    ) {
        let (rows, columns) = (piece.rows.len(), piece.columns.len());
        let pitch = columns.next_multiple_of(PANEL);
        let (left, scratch) = scratch.split_at_mut(rows * LINE);
        let (right, sums) = scratch.split_at_mut(right * DEPTH);
        if self.matmul.k == 0 || self.matmul.goes_on {
            sums[..rows * pitch].fill(0.0);
        }
        // SAFETY: the piece's sums.
        unsafe { self.begin(isa, piece, sums, pitch) };
        let mut plain = self.begins_in_pairs(isa);
        if plain && self.matmul.goes_on {
            let all = PackedBlockRows { x: sums.as_mut_ptr(), pitch, rows, columns };
            // SAFETY: `begin` has read these sums, a pitch apart; `sums` has been cut to them.
            plain = unsafe { launch(isa, all) }.are_plain_sums();
        }
        let (left, right) = (left.as_mut_ptr(), right.as_mut_ptr());
        let at_once = self.stored_at_once(piece);
        let (at, pitch) = at_once.unwrap_or((sums.as_mut_ptr(), pitch));
        for l in (0..self.matmul.k).step_by(DEPTH) {
            let (depth, first) = (DEPTH.min(self.matmul.k - l), l == 0 && !self.matmul.goes_on);
            let mut blocks =
                PackedBlocks { left, right, sums: at, pitch, rows, columns, l, depth, first, ..PackedBlocks::NONE };
            // SAFETY: the block lies in a and in the scratch.
            unsafe { self.prepare_left(isa, piece, &mut blocks, there.take(), &mut plain) };
            multiply(&mut plain, blocks);
            if self.matmul.k <= DEPTH {
                let limits = blocks.limits.filter(|_| plain);
                *there = Some(PackedLhs { matrix: piece.matrix, row: piece.rows.start, limits });
            }
        }
        if at_once.is_none() {
            // SAFETY: the piece's sums.
            unsafe { self.finish(isa, piece, sums, pitch) };
        }
    }

    /// Packs the block of a, unless it is there: as pairs, if these may be multiplied.
    ///
    /// # Safety
    /// As for [`Contract::blocks`].
    unsafe fn prepare_left(
        &self,
        isa: Isa,
        piece: &OutputBlock,
        blocks: &mut PackedBlocks,
        there: Option<PackedLhs>,
        plain: &mut bool,
    ) {
        let there = there.filter(|left| (left.matrix, left.row) == (piece.matrix, piece.rows.start));
        if let Some(PackedLhs { limits, .. }) = there
            && limits.is_some() == *plain
        {
            blocks.limits = limits;
            return;
        }
        // SAFETY: what `Contract::prepare_left` is promised; `StridedInput::within` and `StridedOutput::within` check
        // the operands, `contract` the scratch.
        unsafe {
            if *plain {
                blocks.limits = self.pairs_of_left(isa, piece, blocks);
                *plain = blocks.limits.is_some();
            }
            if !*plain {
                self.pack_left(isa, piece, blocks);
            }
        }
    }

    /// Where register tiles put the sums of a piece themselves, with the elements from row to row: in the result, where
    /// that holds sums as they are and whole panels of them, and where they are done after one block along k.
    fn stored_at_once(&self, piece: &OutputBlock) -> Option<(*mut f32, usize)> {
        let to = self.output(self.corner(piece));
        let [down, across] = [0, 1].map(|axis| to.strides.as_slice()[axis]);
        let plain = to.elem == Elem::F32 && self.matmul.after.is_none() && !self.matmul.goes_on;
        let at_once = (1..=DEPTH).contains(&self.matmul.k) && piece.columns.len().is_multiple_of(PANEL);
        let base = to.base.cast::<f32>();
        let down = usize::try_from(down).ok()?;
        (plain && at_once && across == 1 && base.is_aligned()).then_some((base, down))
    }

    /// Multiplies a packed block of a by the block of b, which is packed here: as pairs, unless their products are others
    /// two at a time.
    ///
    /// # Safety
    /// As for [`Contract::blocks`].
    unsafe fn packed_blocks(&self, isa: Isa, piece: &OutputBlock, blocks: PackedBlocks, plain: &mut bool) {
        // Beside few columns the block of a is what takes long, and runs of few lines are fetched no sooner for it.
        let rows = if blocks.columns < RUN { 0 } else { DEPTH };
        let ahead = self.ahead(piece, blocks.l + blocks.depth, rows, blocks.columns);
        // SAFETY: what `Contract::packed_blocks` is promised; `Contract::has_pairs` has said that the level multiplies
        // pairs.
        unsafe {
            if let Some(limits) = blocks.limits {
                let kept = self.prepacked_right(piece, &blocks, Some(limits));
                let hold = |magnitudes| limits.hold(magnitudes);
                if kept.is_some() || self.pairs_of_right(isa, piece, &blocks, hold).is_some() {
                    let pairs = kept.unwrap_or(blocks).of::<Bf16Pair>(blocks.depth.div_ceil(2));
                    return Multiply { ahead, ..pairs }.run_pairs();
                }
                *plain = false;
                self.pack_left(isa, piece, &blocks);
            }
            let kept = self.prepacked_right(piece, &blocks, None);
            if kept.is_none() {
                self.pack_right(isa, piece, &blocks);
            }
            launch(isa, Multiply { ahead, ..kept.unwrap_or(blocks).of::<f32>(blocks.depth) });
        }
    }

    /// Up to so many rows of b from `l` on, of the piece's first columns, where they lie in rows.
    fn ahead(&self, piece: &OutputBlock, l: usize, rows: usize, columns: usize) -> Ahead {
        if !self.lies_in_rows() || self.prepacked.is_some() {
            return Ahead::NONE;
        }
        let b = self.input(&self.matmul.b, self.corner_of_right(piece, l));
        let bytes = b.elem.bytes();
        let down = b.strides.as_slice()[0] as isize * bytes as isize;
        Ahead { first: b.base, down, rows: rows.min(self.matmul.k - l), bytes: columns * bytes }
    }

    /// Multiplies a packed block of a of few rows by whole panels of b as they lie.
    ///
    /// # Safety
    /// As for [`Contract::blocks`].
    unsafe fn as_it_lies(&self, isa: Isa, piece: &OutputBlock, mut blocks: PackedBlocks, plain: &mut bool) {
        let b = self.input(&self.matmul.b, self.corner_of_right(piece, blocks.l));
        let [down, bytes] = [b.strides.as_slice()[0] as isize, b.elem.bytes() as isize];
        let (end, step) = (blocks.depth, streamed_rows(blocks.columns * b.elem.bytes()));
        for l in (0..end).step_by(step) {
            let depth = step.min(end - l);
            let row = |l: usize| b.base.wrapping_byte_offset(l as isize * down * bytes);
            let ahead = self.ahead(piece, blocks.l + l + depth, step, blocks.columns);
            let PackedBlocks { left, sums, pitch, rows, columns, .. } = blocks;
            let first = blocks.first && l == 0;
            let mut done = 0;
            if let Some(limits) = blocks.limits {
                let (a, b) = (left.cast_const().cast::<Bf16Pair>().wrapping_add(l / 2), row(l).cast::<u16>());
                let pairs = Multiply { a, b, down, panel: PANEL, sums, pitch, rows, columns, depth, first, ahead };
                // SAFETY: `Contract::has_pairs` has said that the level multiplies pairs; the rows lie in b.
                unsafe {
                    done = pairs.run_pairs(limits);
                    if done < columns {
                        blocks.limits = None;
                        *plain = false;
                        self.pack_left(isa, piece, &blocks);
                    }
                }
            }
            if done < columns {
                let a = left.cast_const().wrapping_add(l);
                with_float!(b.elem, E => {
                    let b = row(l).cast::<E>();
                    let all = Multiply { a, b, down, panel: PANEL, sums, pitch, rows, columns, depth, first, ahead };
                    // SAFETY: the block of a is packed; b has the rows and whole panels of the piece's columns (`lies_in_rows`).
                    unsafe { launch(isa, all.panel_at(done)) };
                });
            }
        }
    }

    /// Packs the block of a as pairs and says which blocks of b may be multiplied by them, if any.
    ///
    /// # Safety
    /// As for [`Contract::blocks`], of a product that has pairs.
    unsafe fn pairs_of_left(&self, isa: Isa, piece: &OutputBlock, blocks: &PackedBlocks) -> Option<ExponentLimits> {
        let a = self.input(&self.matmul.a, self.corner_of_left(piece, blocks.l));
        let [down, across] = [0, 1].map(|axis| a.strides.as_slice()[axis] as isize);
        if let Some(made) = self.matmul.left {
            // SAFETY: what `Contract::pairs_of_left` is promised; `StridedInput::within` and `StridedOutput::within`
            // check the operands, `contract` the scratch.
            return ExponentLimits::beside(unsafe { self.pairs_of_prologue(isa, made, piece, blocks) });
        }
        if across == 1 {
            let numbers = Numbers { from: a.base.cast(), down, rows: blocks.rows, columns: blocks.depth };
            // SAFETY: `Contract::has_pairs` has said that the level multiplies pairs.
            return ExponentLimits::beside(unsafe { numbers.as_rows(blocks.left.cast()) });
        }
        // SAFETY: what `Contract::pairs_of_left` is promised; `StridedInput::within` and `StridedOutput::within` check
        // the operands, `contract` the scratch.
        unsafe { self.pack_left(isa, piece, blocks) };
        // SAFETY: `pack_left` has just written the rows of a.
        let limits = ExponentLimits::beside(unsafe { launch(isa, blocks.of_a()) })?;
        // SAFETY: `pack_left` has just written the rows of a.
        unsafe { launch(isa, PairsOfRow(blocks.of_a())) };
        Some(limits)
    }

    /// Packs the block of a that a program makes as pairs and says of which magnitudes. The place of b's block is free meanwhile.
    ///
    /// # Safety
    /// As for [`Contract::blocks`], of a product that has pairs.
    unsafe fn pairs_of_prologue(
        &self,
        isa: Isa,
        made: Fused<'_>,
        piece: &OutputBlock,
        blocks: &PackedBlocks,
    ) -> Magnitudes {
        let (all, columns, x) = (self.corner_of_left(piece, blocks.l), blocks.depth, blocks.right);
        let mut met = Magnitudes::NONE;
        for r in (0..blocks.rows).step_by(PROLOGUE_ROWS) {
            let (corner, rows) = (Corner { row: all.row + r, ..all }, PROLOGUE_ROWS.min(blocks.rows - r));
            let band = Cached { corner, rows, columns, x, pitch: LINE };
            let pairs = blocks.left.wrapping_add(r * LINE);
            // Numbers of 16 bits lie in the second half of a line, and their pairs in the first.
            let numbers = pairs.wrapping_add(LINE / 2);
            let to = StridedOutput::at(numbers.cast(), Elem::BF16, flat(2 * LINE as i64, 1));
            let numbers = Numbers { from: numbers.cast_const().cast(), down: 2 * LINE as isize, rows, columns };
            // SAFETY: what `Contract::pairs_of_prologue` is promised; `Contract::has_pairs` has said that the level
            // multiplies pairs, and that the program makes numbers of bf16.
            unsafe {
                self.run_prologue(isa, made, band, to);
                met = met.and(numbers.as_rows(pairs.cast()));
            }
        }
        met
    }

    /// Packs the block of b as pairs, if its numbers are of such magnitudes, and says of which.
    ///
    /// # Safety
    /// As for [`Contract::blocks`], of a product that has pairs.
    pub(super) unsafe fn pairs_of_right(
        &self,
        isa: Isa,
        piece: &OutputBlock,
        blocks: &PackedBlocks,
        are_such: impl Fn(Magnitudes) -> bool,
    ) -> Option<Magnitudes> {
        if self.lies_in_rows() && self.matmul.b.elem == Elem::BF16 {
            let b = self.input(&self.matmul.b, self.corner_of_right(piece, blocks.l));
            let (from, down) = (b.base.cast(), b.strides.as_slice()[0] as isize);
            let numbers = Numbers { from, down, rows: blocks.depth, columns: blocks.columns };
            // SAFETY: `Contract::has_pairs` has said that the level multiplies pairs.
            return Some(unsafe { numbers.as_panels(blocks.right.cast(), blocks.panel) }).filter(|all| are_such(*all));
        }
        // SAFETY: what `Contract::pairs_of_right` is promised; `StridedInput::within` and `StridedOutput::within`
        // check the operands, `contract` the scratch.
        if let Some(all) = unsafe { self.turned_pairs(isa, piece, blocks) } {
            return Some(all).filter(|all| are_such(*all));
        }
        // SAFETY: what `Contract::pairs_of_right` is promised; `StridedInput::within` and `StridedOutput::within`
        // check the operands, `contract` the scratch.
        unsafe { self.pack_right(isa, piece, blocks) };
        // SAFETY: `pack_right` has just written the panels of b.
        let all = blocks.of_b().fold(Magnitudes::NONE, |all, panel| all.and(unsafe { launch(isa, panel) }));
        if !are_such(all) {
            return None;
        }
        // SAFETY: `pack_right` has just written the panels of b.
        blocks.of_b().for_each(|panel| unsafe { launch(isa, PairsOfPanel(panel)) });
        Some(all)
    }

    /// Packs the block of b as pairs and says of which magnitudes, where they lie in memory: two numbers of a column side by
    /// side, at an address of a word.
    ///
    /// # Safety
    /// As for [`Contract::blocks`], of a product that has pairs.
    unsafe fn turned_pairs(&self, isa: Isa, piece: &OutputBlock, blocks: &PackedBlocks) -> Option<Magnitudes> {
        let b = self.input(&self.matmul.b, self.corner_of_right(piece, blocks.l));
        let (from, [down, across]) = (b.base.cast::<f32>(), [0, 1].map(|axis| b.strides.as_slice()[axis] as isize));
        let side_by_side = b.elem == Elem::BF16 && down == 1 && self.matmul.right.is_none();
        if !side_by_side || !from.is_aligned() || across % 2 != 0 || !blocks.depth.is_multiple_of(2) {
            return None;
        }
        let PackedBlocks { right: into, panel, columns, depth, .. } = *blocks;
        let rows = depth / 2;
        // SAFETY: the piece's block of b, whose pairs are words that lie aligned, which has just been checked; the room is the
        // scratch of `Contract::blocks`.
        unsafe { launch(isa, Pack { from, down, across: across / 2, rows, columns, into, width: PANEL, panel }) };
        let panels = PackedBlocks { depth: rows, ..*blocks };
        // SAFETY: `Contract::has_pairs` has said that the level multiplies pairs; the panels were just packed.
        Some(panels.of_b().fold(Magnitudes::NONE, |all, panel| all.and(unsafe { panel.words_as_pairs() })))
    }

    /// Row `l` of b at the piece's columns.
    fn corner_of_right(&self, piece: &OutputBlock, l: usize) -> Corner {
        Corner { matrix: piece.matrix, row: l, column: piece.columns.start, down: self.matmul.batch.len() }
    }

    /// Column `l` of a at the piece's rows.
    fn corner_of_left(&self, piece: &OutputBlock, l: usize) -> Corner {
        Corner { column: l, ..self.corner(piece) }
    }

    /// Packs the block of a.
    ///
    /// # Safety
    /// As for [`Contract::blocks`].
    unsafe fn pack_left(&self, isa: Isa, piece: &OutputBlock, blocks: &PackedBlocks) {
        let PackedBlocks { left, rows: all, l, depth: columns, .. } = *blocks;
        let first = self.corner_of_left(piece, l);
        let at_once = if self.matmul.left.is_some() { PROLOGUE_ROWS } else { all.max(1) };
        for r in (0..all).step_by(at_once) {
            let (corner, x) = (Corner { row: first.row + r, ..first }, left.wrapping_add(r * LINE));
            let band = Cached { corner, rows: at_once.min(all - r), columns, x, pitch: LINE };
            // SAFETY: what `Contract::pack_left` is promised; the block is one panel; `StridedInput::within` and
            // `StridedOutput::within` check the operands, `contract` the scratch.
            unsafe {
                match self.matmul.left {
                    Some(made) => {
                        self.run_prologue(isa, made, band, StridedOutput::at(x.cast(), Elem::F32, flat(LINE as i64, 1)))
                    }
                    None => self.pack(isa, &self.matmul.a, band, 0, x),
                }
            }
        }
    }

    /// Packs the block of b, of the piece's columns.
    ///
    /// # Safety
    /// As for [`Contract::blocks`].
    pub(super) unsafe fn pack_right(&self, isa: Isa, piece: &OutputBlock, blocks: &PackedBlocks) {
        let PackedBlocks { right, panel: apart, columns, l, depth, .. } = *blocks;
        let corner = self.corner_of_right(piece, l);
        let block = Cached { corner, rows: depth, columns, x: right, pitch: PANEL };
        // SAFETY: what `Contract::pack_right` is promised; `StridedInput::within` and `StridedOutput::within` check
        // the operands, `contract` the scratch.
        unsafe { self.pack(isa, &self.matmul.b, block, apart, right) };
        for c in (0..columns).step_by(PANEL) {
            let corner = Corner { column: corner.column + c, ..corner };
            let x = right.wrapping_add(c / PANEL * apart);
            let panel = Cached { corner, columns: PANEL.min(columns - c), x, ..block };
            // SAFETY: what `Contract::pack_right` is promised; `StridedInput::within` and `StridedOutput::within`
            // check the operands, `contract` the scratch.
            unsafe { self.change(isa, self.matmul.right, panel, x) };
        }
    }

    /// Packs a block of an operand, in panels as wide as the pitch.
    ///
    /// # Safety
    /// As for [`Contract::blocks`], of the block; `into` has room for its panels.
    unsafe fn pack(&self, isa: Isa, from: &StridedInput, block: Cached, panel: usize, into: *mut f32) {
        let from = self.input(from, block.corner);
        let [down, across] = [0, 1].map(|axis| from.strides.as_slice()[axis] as isize);
        let (rows, columns, width) = (block.rows, block.columns, block.pitch);
        with_float!(from.elem, E => {
            let from = from.base.cast::<E>();
            // SAFETY: the block of the operand and the room that `pack` is promised.
            unsafe { launch(isa, Pack { from, down, across, rows, columns, into, width, panel }) };
        });
    }

    /// Puts a program's values in place of a block's elements.
    ///
    /// # Safety
    /// As for [`Contract::through`]; the block was just packed, into scratch that is this worker's alone.
    unsafe fn change(&self, isa: Isa, fused: Option<Fused<'_>>, block: Cached, x: *mut f32) {
        let Some(fused) = fused else { return };
        let to = StridedOutput::at(x.cast(), Elem::F32, flat(block.pitch as i64, 1));
        // SAFETY: what `Contract::change` is promised; the block was just packed, into scratch that is this worker's
        // alone; `StridedInput::within` and `StridedOutput::within` check the operands, `contract` the scratch.
        unsafe { self.through(isa, fused, block, to) };
    }

    /// Puts a program's values of a block's elements into `to`.
    ///
    /// # Safety
    /// The block's elements exist, in the program's other inputs too, and at `to`, where they are the caller's alone.
    pub(super) unsafe fn through(&self, isa: Isa, fused: Fused<'_>, block: Cached, to: StridedOutput) {
        let from = StridedInput::at(block.x.cast(), Elem::F32, flat(block.pitch as i64, 1));
        // SAFETY: what `Contract::through` is promised; `StridedInput::within` and `StridedOutput::within` check the
        // operands, `contract` the scratch.
        unsafe { self.values(isa, fused, from, block, to) };
    }

    /// Puts a program's values of elements that lie anywhere, at the places of a block, into `to`.
    ///
    /// # Safety
    /// As for [`Contract::through`].
    unsafe fn values(&self, isa: Isa, fused: Fused<'_>, from: StridedInput, block: Cached, to: StridedOutput) {
        let mut inputs = [from; MAX_INPUTS];
        for (to, from) in inputs[1..].iter_mut().zip(fused.others) {
            *to = self.input(from, block.corner);
        }
        let (inputs, all) = (&inputs[..=fused.others.len()], block.rows * block.columns);
        let sizes = LoopSizes::new(&[block.rows, block.columns]);
        let sizes = sizes.unwrap_or_else(|_| unreachable!("a part of sizes that were checked"));
        // SAFETY: what `Contract::values` is promised; `BatchMatmul::check` has checked the types.
        unsafe { map(isa, fused.program, &sizes, inputs, to, 0..all) };
    }

    /// Puts what a program makes of elements of a into `to`. Elements of a row that lie apart are packed into the block first.
    ///
    /// # Safety
    /// As for [`Contract::through`]; the block is scratch that is this worker's alone.
    unsafe fn run_prologue(&self, isa: Isa, fused: Fused<'_>, block: Cached, to: StridedOutput) {
        let from = self.input(&self.matmul.a, block.corner);
        // SAFETY: what `Contract::run_prologue` is promised; `StridedInput::within` and `StridedOutput::within` check
        // the operands, `contract` the scratch.
        unsafe {
            if from.strides.as_slice()[1] == 1 {
                return self.values(isa, fused, from, block, to);
            }
            self.pack(isa, &self.matmul.a, block, 0, block.x.cast_mut());
            self.through(isa, fused, block, to);
        }
    }
}
