//! Which positions a token sees, and where they lie.

use super::NodeView;
use crate::elements::Elements;
use crate::scope::KernelScope;
use crate::strided_index::fixed;
use yirage_hal::HalError;
use yirage_ir::op::Attention;
use yirage_kir::{KernelWriter, Register, ScalarType};

/// What says which positions a token sees.
pub(super) struct SeenPositions {
    positions: Elements,
    seqs: Elements,
    /// Positions that a token sees, itself included, and as many behind it where later ones are not hidden; 0 is all.
    window: i32,
    causal: bool,
    keys: KeyPlaces,
}

/// Where keys lie.
enum KeyPlaces {
    /// In blocks of a cache.
    Cache {
        /// The blocks of each sequence.
        table: Elements,
        /// Sequences, and blocks of each.
        size: [Register; 2],
        /// Positions of a block.
        length: u32,
    },
    /// A row for each of so many tokens.
    Tokens(Register),
}

/// Sequences and blocks of each, and positions of a block.
struct BlockTableSizes {
    size: [Register; 2],
    length: u32,
}

/// What a token sees of its sequence: positions, or tokens of the step.
pub(super) struct SeenRange {
    pub(super) first: Register,
    pub(super) end: Register,
    /// Where the chunk begins that the first is in.
    pub(super) first_chunk: Register,
    seq: Register,
    /// The token's position.
    position: Register,
    /// The first position of its window.
    window_first: Register,
    /// Where its sequence's blocks stand in the table.
    table_row: Register,
}

impl SeenPositions {
    pub(super) fn new(
        scope: &mut KernelScope<'_>,
        view: &NodeView<'_>,
        op: &Attention,
    ) -> Result<SeenPositions, HalError> {
        let at = if op.cached { 2 } else { 3 };
        let keys = if op.cached {
            let table = &view.input(4).shape;
            let size = [scope.size(table[0]), scope.size(table[1])];
            KeyPlaces::Cache { table: scope.read(view.ins[4]), size, length: fixed(view.input(1).shape[0])? }
        } else {
            KeyPlaces::Tokens(scope.size(view.input(0).shape[0]))
        };
        Ok(SeenPositions {
            positions: scope.read(view.ins[at]),
            seqs: scope.read(view.ins[at + 1]),
            // A window that is longer than positions can be hides nothing.
            window: i32::try_from(op.window).unwrap_or(0),
            causal: op.causal,
            keys,
        })
    }

    /// What a token sees. `chunk` positions are met together.
    pub(super) fn range(&self, w: &mut KernelWriter, token: Register, chunk: u32) -> SeenRange {
        let (position, seq) = (self.positions.load(w, token), self.seqs.load(w, token));
        let zero = w.i32(0);
        let window_first = if self.window > 0 {
            let before = w.i32(self.window - 1);
            // Of a position below 0 nothing is seen.
            let known = w.max(position, zero);
            let first = w.sub(known, before);
            w.max(first, zero)
        } else {
            zero
        };
        match &self.keys {
            KeyPlaces::Cache { size, length, .. } => {
                let shape = BlockTableSizes { size: *size, length: *length };
                Self::cached_range(w, position, seq, window_first, shape, chunk)
            }
            KeyPlaces::Tokens(tokens) => {
                let (first, end) = self.sequence_tokens(w, seq, *tokens);
                SeenRange { first, end, first_chunk: first, seq, position, window_first, table_row: first }
            }
        }
    }

    fn cached_range(
        w: &mut KernelWriter,
        position: Register,
        seq: Register,
        window_first: Register,
        BlockTableSizes { size: [seqs, blocks], length }: BlockTableSizes,
        chunk: u32,
    ) -> SeenRange {
        let (zero, one, length) = (w.i32(0), w.u32(1), w.u32(length));
        // Whatever a step says, nothing beside the table is read.
        let last_seq = w.sub(seqs, one);
        let row = w.bitcast(ScalarType::U32, seq);
        let row = w.min(row, last_seq);
        let table_row = w.mul(row, blocks);
        let is_position = w.less_equal(zero, position);
        let at = w.bitcast(ScalarType::U32, position);
        let (end, none, most) = (w.add(at, one), w.u32(0), w.mul(blocks, length));
        let end = w.select(is_position, end, none);
        let end = w.min(end, most);
        let first = w.bitcast(ScalarType::U32, window_first);
        let first = w.min(first, end);
        let chunk = w.u32(chunk);
        let before = w.div(first, chunk);
        let first_chunk = w.mul(before, chunk);
        SeenRange { first, end, first_chunk, seq, position, window_first, table_row }
    }

    /// The first token of a sequence in the step, and the one behind its last. Each thread looks through all tokens: what it
    /// finds bounds loops that all threads have to run alike.
    fn sequence_tokens(&self, w: &mut KernelWriter, seq: Register, tokens: Register) -> (Register, Register) {
        let (zero, one) = (w.u32(0), w.u32(1));
        let (first, end) = (w.variable(tokens), w.variable(zero));
        w.for_each(zero, tokens, one, |w, token| {
            let other = self.seqs.load(w, token);
            let is_same = w.equal(other, seq);
            w.when(is_same, |w| {
                let (so_far, behind) = (w.get(first), w.add(token, one));
                let least = w.min(so_far, token);
                w.set(first, least);
                w.set(end, behind);
            });
        });
        (w.get(first), w.get(end))
    }

    /// Whether a token sees a position, and that position or another that is there.
    pub(super) fn sees(&self, w: &mut KernelWriter, range: &SeenRange, position: Register) -> (Register, Register) {
        let (above, below) = (w.less_equal(range.first, position), w.less(position, range.end));
        let inside = w.and(above, below);
        let at = w.select(inside, position, range.first);
        let KeyPlaces::Tokens(_) = self.keys else { return (inside, at) };
        let (seq, other) = (self.seqs.load(w, at), self.positions.load(w, at));
        let is_same = w.equal(seq, range.seq);
        let mut seen = w.and(inside, is_same);
        let in_window = w.less_equal(range.window_first, other);
        seen = w.and(seen, in_window);
        if self.causal {
            let not_later = w.less_equal(other, range.position);
            seen = w.and(seen, not_later);
        } else if self.window > 0 {
            let (behind, most) = (w.sub(other, range.position), w.i32(self.window - 1));
            let not_far = w.less_equal(behind, most);
            seen = w.and(seen, not_far);
        }
        (seen, at)
    }

    /// Where a position's key lies: keys of all heads before it.
    pub(super) fn slot(&self, w: &mut KernelWriter, range: &SeenRange, position: Register) -> Register {
        let KeyPlaces::Cache { length, .. } = self.keys else { return position };
        let length = w.u32(length);
        let block = w.div(position, length);
        let slots = self.slots_before(w, range, block);
        w.add(slots, position)
    }

    /// What is added to positions of a block to get their slots.
    fn slots_before(&self, w: &mut KernelWriter, range: &SeenRange, block: Register) -> Register {
        let KeyPlaces::Cache { table, length, .. } = &self.keys else { return w.u32(0) };
        let (length, zero) = (w.u32(*length), w.i32(0));
        let at = w.add(range.table_row, block);
        let number = table.load(w, at);
        // A block that is not there is read as the first.
        let number = w.max(number, zero);
        let number = w.bitcast(ScalarType::U32, number);
        let behind = w.sub(number, block);
        w.mul(behind, length)
    }

    /// Stretches of positions from `from` to `end` whose keys lie behind each other, with what is added to positions to get
    /// their slots.
    pub(super) fn for_each_stretch(
        &self,
        w: &mut KernelWriter,
        range: &SeenRange,
        from: Register,
        end: Register,
        body: impl FnOnce(&mut KernelWriter, Register, Register, Register),
    ) {
        let KeyPlaces::Cache { length, .. } = self.keys else {
            let none = w.u32(0);
            return body(w, from, end, none);
        };
        let (length, one, less_one) = (w.u32(length), w.u32(1), w.u32(length - 1));
        let first = w.div(from, length);
        let behind = w.add(end, less_one);
        let behind = w.div(behind, length);
        w.for_each(first, behind, one, |w, block| {
            let slots = self.slots_before(w, range, block);
            let start = w.mul(block, length);
            let next = w.add(start, length);
            let (from, end) = (w.max(start, from), w.min(next, end));
            body(w, from, end, slots);
        });
    }
}
