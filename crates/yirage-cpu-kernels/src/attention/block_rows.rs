//! Blocks of the cache in rows and back: position after position, of each its heads, of each its key and its value, in the
//! elements that are stored. No element changes; what tiles pad is 0.

use super::cell::SCALE_GROUP;
use super::{AttentionShape, BLOCK};
use crate::simd::LANES;
use yirage_ir::Format;

/// Bytes that lie together in rows and in a block.
struct Stretch {
    row: usize,
    block: usize,
    bytes: usize,
}

impl AttentionShape {
    /// Bytes of a head of one position in rows.
    fn row_bytes(&self) -> usize {
        self.kv.bytes(self.k_width) + if self.v_in_k { 0 } else { self.kv.bytes(self.v_width) }
    }

    /// Bytes of a block in rows.
    pub fn block_row_bytes(&self) -> usize {
        BLOCK * self.kv_heads * self.row_bytes()
    }

    /// A block in rows. Both are as long as their shapes say.
    pub fn rows_of_block(&self, block: &[u8], rows: &mut [u8]) {
        self.for_each_stretch(|Stretch { row, block: at, bytes }| {
            rows[row..][..bytes].copy_from_slice(&block[at..][..bytes]);
        });
    }

    /// A block of rows. Both are as long as their shapes say.
    pub fn block_of_rows(&self, rows: &[u8], block: &mut [u8]) {
        block.fill(0);
        self.for_each_stretch(|Stretch { row, block: at, bytes }| {
            block[at..][..bytes].copy_from_slice(&rows[row..][..bytes]);
        });
    }

    fn for_each_stretch(&self, mut each: impl FnMut(Stretch)) {
        for position in 0..BLOCK {
            for head in 0..self.kv_heads {
                let row = (position * self.kv_heads + head) * self.row_bytes();
                let block = head * self.head_bytes();
                self.for_each_of_part(self.k_width, row, block, &mut each, |d| {
                    (position / LANES * self.k_rows() * LANES, d, position % LANES)
                });
                self.for_each_scale(position, self.k_width, row, block, &mut each);
                if self.v_in_k {
                    continue;
                }
                let (row, block) = (row + self.kv.bytes(self.k_width), block + self.k_bytes());
                self.for_each_of_part(self.v_width, row, block, &mut each, |d| {
                    (d / LANES * BLOCK * LANES, position, d % LANES)
                });
                self.for_each_scale(position, self.v_width, row, block, &mut each);
            }
        }
    }

    /// Rows of a tile of keys.
    fn k_rows(&self) -> usize {
        if self.is_scaled() { self.k_width } else { self.k_pad() }
    }

    fn is_scaled(&self) -> bool {
        self.kv.block() > 1
    }

    /// The elements of a key or a value; `place` says for each in which tile it lies (the first element of it), and in which
    /// row and column of that.
    fn for_each_of_part(
        &self,
        width: usize,
        row: usize,
        block: usize,
        each: &mut impl FnMut(Stretch),
        place: impl Fn(usize) -> (usize, usize, usize),
    ) {
        let bytes = if self.is_scaled() { 1 } else { self.kv.bytes(1) };
        for d in 0..width {
            let (tile, at_row, column) = place(d);
            let inside = match self.kv.format() {
                Format::BF16 => at_row / 2 * 2 * LANES + column * 2 + at_row % 2,
                _ => at_row * LANES + column,
            };
            // Behind the scales of so many groups where there are some.
            let row = if self.is_scaled() { row + d + 2 * (d / SCALE_GROUP + 1) } else { row + d * bytes };
            each(Stretch { row, block: block + (tile + inside) * bytes, bytes });
        }
    }

    /// The scales of a key or a value, where it has some.
    fn for_each_scale(&self, position: usize, width: usize, row: usize, block: usize, each: &mut impl FnMut(Stretch)) {
        if !self.is_scaled() {
            return;
        }
        for group in 0..width / SCALE_GROUP {
            let at = block + BLOCK * width + (group * BLOCK + position) * 2;
            each(Stretch { row: row + group * (SCALE_GROUP + 2), block: at, bytes: 2 });
        }
    }
}
