//! The numbers of a row that are too large for its codes: found, taken out of their blocks, and stored beside them.

use super::{ActivationBufferLayout, ActivationEncoding, Meta};
use crate::isa::Isa;
use crate::pack::BLOCK;
use yirage_ir::activation::q8a::{LARGE, MAX_OUTLIERS, MOST};

/// The outliers of a block of a token.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct BlockOutliers {
    /// A bit for each of the block's numbers that is one.
    pub(crate) columns: u32,
    /// They themselves, in ascending order of columns; as many as there are bits.
    pub(crate) values: [f32; MAX_OUTLIERS],
}

impl BlockOutliers {
    /// Takes those numbers out of `block` that are `large`: [`MAX_OUTLIERS`] at most, the largest, of equal ones the
    /// first.
    fn take(block: &mut [f32; BLOCK], large: impl Fn(f32) -> bool) -> BlockOutliers {
        let columns = |some: u32| (0..BLOCK).filter(move |c| some >> c & 1 == 1);
        let mut found = (0..BLOCK).filter(|&c| large(block[c])).fold(0u32, |all, c| all | 1 << c);
        while found.count_ones() as usize > MAX_OUTLIERS {
            let least = columns(found).rev().min_by(|&a, &b| block[a].abs().total_cmp(&block[b].abs()));
            found &= !least.map_or(0, |c| 1 << c);
        }
        let mut out = BlockOutliers { columns: found, values: [0.0; MAX_OUTLIERS] };
        for (value, c) in out.values.iter_mut().zip(columns(found)) {
            *value = std::mem::take(&mut block[c]);
        }
        out
    }
}

impl ActivationBufferLayout {
    /// Takes the outliers out of a token's blocks.
    ///
    /// # Safety
    /// As [`ActivationBufferLayout::store`], for the row at `row`; the token's blocks are stored, with outliers as any numbers.
    pub(super) unsafe fn store_outliers(&self, isa: Isa, row: *const f32, token: usize, out: *mut u8) {
        let ((first, step), real) = (self.block_offset(token), self.k.div_ceil(BLOCK));
        let square = |scale: f32| f64::from(scale) * f64::from(scale);
        // SAFETY: blocks, metas, outliers and bits of this token lie in the layout.
        unsafe {
            let metas = out.add(self.meta_offset()).cast::<Meta>();
            let scale = |b: usize| metas.add(first + b * step).read_unaligned().scale;
            let sum: f64 = (0..real).map(|b| square(scale(b))).sum();
            let large = |scale: f32| square(scale) * real as f64 > LARGE * sum;
            let held = out.add(self.outlier_offset()).cast::<BlockOutliers>();
            let marks = out.add(self.mark_offset()).cast::<u64>().add(token * self.mark_words());
            for word in 0..self.mark_words() {
                let mut bits = 0u64;
                for b in (word * 64..real.min((word + 1) * 64)).filter(|&b| large(scale(b))) {
                    bits |= 1 << (b % 64);
                    let (at, mut block) = (first + b * step, [0f32; BLOCK]);
                    let have = BLOCK.min(self.k - b * BLOCK);
                    std::ptr::copy_nonoverlapping(row.add(b * BLOCK), block.as_mut_ptr(), have);
                    held.add(at).write_unaligned(BlockOutliers::take(&mut block, |x| large(x.abs() / f32::from(MOST))));
                    self.store_block(isa, block.as_ptr(), at, out);
                }
                marks.add(word).write_unaligned(bits);
            }
        }
    }

    /// The outliers of a block as [`ActivationBufferLayout::store`] left them in `stored`, each in its column; 0 elsewhere.
    pub(super) fn outliers(&self, stored: &[u8], token: usize, block: usize) -> Option<[f32; BLOCK]> {
        debug_assert_eq!(self.form, ActivationEncoding::Q8);
        let word = self.mark_offset() + (token * self.mark_words() + block / 64) * size_of::<u64>();
        let marks = u64::from_ne_bytes(*stored.get(word..)?.first_chunk()?);
        let mut out = [0.0; BLOCK];
        if marks >> (block % 64) & 1 == 1 {
            let (first, step) = self.block_offset(token);
            let at = self.outlier_offset() + (first + block * step) * size_of::<BlockOutliers>();
            let words = stored.get(at..at + size_of::<BlockOutliers>())?.chunks_exact(4);
            let mut words = words.map(|w| u32::from_ne_bytes([w[0], w[1], w[2], w[3]]));
            let columns = words.next()?;
            for (c, value) in (0..BLOCK).filter(|c| columns >> c & 1 == 1).zip(words) {
                out[c] = f32::from_bits(value);
            }
        }
        Some(out)
    }
}
