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

#[cfg(test)]
mod tests {
    use super::super::{KvCacheView, KvType};
    use super::*;
    use crate::rows::Src;
    use yirage_ir::rng::Rng;

    /// What is appended comes out as rows of its format, and goes in again.
    #[test]
    fn blocks_are_rows_of_what_was_appended() {
        let mut rng = Rng::new(9);
        for (kv_heads, k_width, v_width, v_in_k) in [(2, 32, 64, false), (1, 64, 32, true), (3, 96, 32, false)] {
            for kv in KvType::ALL {
                let odd = usize::from(kv.block() == 1);
                let (k_width, v_width) = (k_width - odd, v_width - odd);
                let shape = AttentionShape { heads: kv_heads, kv_heads, k_width, v_width, v_in_k, kv };
                let mut float = || (rng.next_u64() % 2001) as f32 / 500.0 - 2.0;
                let keys: Vec<f32> = (0..BLOCK * kv_heads * k_width).map(|_| float()).collect();
                let values: Vec<f32> = (0..BLOCK * kv_heads * v_width).map(|_| float()).collect();
                let mut block = vec![0u8; shape.block_bytes()];
                let slots: Vec<i32> = (0..BLOCK as i32).collect();
                // SAFETY: one block of the shape's bytes; `KvCacheView::append` checks the slots, and the rows are whole.
                unsafe {
                    let cache = KvCacheView::new(shape, block.as_mut_ptr(), 1).unwrap();
                    let rows = |x: &[f32], width: usize| Src::new(x.as_ptr(), kv_heads * width);
                    cache.append(0..BLOCK, rows(&keys, k_width), rows(&values, v_width), &slots).unwrap();
                }
                let encode = kv.format().info().encode.unwrap();
                let mut want = Vec::new();
                for cell in 0..BLOCK * kv_heads {
                    let parts = [(&keys, k_width), (&values, if v_in_k { 0 } else { v_width })];
                    for (x, width) in parts.into_iter().filter(|(_, width)| *width > 0) {
                        let mut bytes = vec![0; kv.bytes(width)];
                        encode(&x[cell * width..][..width], &mut bytes);
                        want.extend(bytes);
                    }
                }
                let mut rows = vec![0; shape.block_row_bytes()];
                shape.rows_of_block(&block, &mut rows);
                assert!(rows == want, "{shape:?}");
                let mut again = vec![7u8; block.len()];
                shape.block_of_rows(&rows, &mut again);
                assert!(again == block, "{shape:?}");
            }
        }
    }
}
