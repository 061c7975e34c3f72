//! `q8a`: int8 in blocks of 32, but for the few numbers that are much larger than the others.
//!
//! Per block `scale = max|x| / MOST`, codes are `x / scale` rounded to nearest even (by the f32 reciprocal of the scale);
//! a block of zeros has scale 0. A block holding NaN or an infinity has a NaN scale, so that it cannot pass for a number.
//!
//! Rounding noise grows with the square of a block's scale, and in the residual streams of real models a few channels are
//! tens of times larger than the others, so that a few blocks would make nearly all of it. Such numbers are outliers: they
//! stay f32 beside the codes, their codes are 0, and the block's scale is that of the rest. An outlier is an `x` with
//! `(|x| / MOST)^2 * blocks > LARGE * (sum of scale^2)` over the blocks of the row's part, with the scales that they would have
//! without outliers, |x| / MOST in f32, the rest in f64, ascending. Fewer than two fifths of the blocks can have some; a
//! block has [`MAX_OUTLIERS`] at most, the largest, of equal ones the first. (The idea of taking outliers apart is that of
//! LLM.int8(), arXiv 2208.07339.)

use super::ActivationFormatSpec;
use crate::dtype::DType;

/// Numbers of a block.
pub const BLOCK: usize = 32;

/// By how much an outlier's block would be noisier than the mean, as a power.
pub const LARGE: f64 = 2.5;

/// The largest code. 8 bits would hold more; with this one the sum of a code and a number of 4 bits has 8 bits, by which
/// processors multiply half as often (Winograd's inner product).
pub const MOST: i8 = 120;

/// Most outliers of a block.
pub const MAX_OUTLIERS: usize = 7;

/// Codes, scale, a word that says which numbers the outliers are, and they.
const BYTES: usize = BLOCK + 4 + 4 + 4 * MAX_OUTLIERS;

pub(super) const INFO: ActivationFormatSpec =
    ActivationFormatSpec { name: "q8a", dtype: DType::I8, block: BLOCK, bytes: BYTES, encode, decode };

/// A block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Q8aBlock {
    /// One code a number; that of an outlier is 0.
    pub codes: [i8; BLOCK],
    /// What a code of 1 is worth.
    pub scale: f32,
    /// The outliers, each in its column; 0 elsewhere.
    pub outliers: [f32; BLOCK],
}

impl Q8aBlock {
    /// Codes and scale of 32 numbers, none of them an outlier.
    fn of(x: &[f32]) -> Q8aBlock {
        let finite = x.iter().all(|v| v.is_finite());
        let scale = x.iter().fold(0f32, |a, v| a.max(v.abs())) / f32::from(MOST);
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let mut codes = [0; BLOCK];
        for (code, v) in codes.iter_mut().zip(x) {
            *code = (v * inverse).round_ties_even().clamp(f32::from(-MOST), f32::from(MOST)) as i8;
        }
        Q8aBlock { codes, scale: if finite { scale } else { f32::NAN }, outliers: [0.0; BLOCK] }
    }

    /// The same numbers with those apart that are `large`.
    fn with_outliers(x: &[f32], large: impl Fn(f32) -> bool) -> Q8aBlock {
        let (mut rest, mut outliers) = (x.to_vec(), [0.0; BLOCK]);
        let mut apart: Vec<usize> = (0..x.len()).filter(|&i| large(x[i])).collect();
        apart.sort_by(|&a, &b| x[b].abs().total_cmp(&x[a].abs()));
        for i in apart.into_iter().take(MAX_OUTLIERS) {
            outliers[i] = std::mem::take(&mut rest[i]);
        }
        Q8aBlock { outliers, ..Q8aBlock::of(&rest) }
    }

    fn write(&self, dst: &mut [u8]) {
        let columns = (0..BLOCK).filter(|&c| self.outliers[c] != 0.0);
        let marks = columns.clone().fold(0u32, |all, c| all | 1 << c);
        let values = columns.flat_map(|c| self.outliers[c].to_le_bytes());
        let codes = self.codes.iter().map(|&code| code as u8);
        let bytes = codes.chain(self.scale.to_le_bytes()).chain(marks.to_le_bytes()).chain(values);
        dst.iter_mut().zip(bytes.chain(std::iter::repeat(0))).for_each(|(to, byte)| *to = byte);
    }

    /// The block of these bytes.
    fn read(src: &[u8]) -> Q8aBlock {
        let (codes, words) = src.split_at(BLOCK);
        let mut words = words.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
        let mut block = Q8aBlock { codes: [0; BLOCK], scale: 0.0, outliers: [0.0; BLOCK] };
        block.codes.iter_mut().zip(codes).for_each(|(code, &byte)| *code = byte as i8);
        block.scale = f32::from_bits(words.next().unwrap_or(0));
        let marks = words.next().unwrap_or(0);
        for (c, value) in (0..BLOCK).filter(|c| marks >> c & 1 == 1).zip(words) {
            block.outliers[c] = f32::from_bits(value);
        }
        block
    }
}

/// The blocks of encoded rows.
pub fn blocks(bytes: &[u8]) -> impl Iterator<Item = Q8aBlock> {
    bytes.chunks_exact(BYTES).map(Q8aBlock::read)
}

fn encode(part: &[f32], dst: &mut [u8]) {
    let square = |scale: f32| f64::from(scale) * f64::from(scale);
    let count = (part.len() / BLOCK) as f64;
    let sum: f64 = part.chunks_exact(BLOCK).map(|x| square(Q8aBlock::of(x).scale)).sum();
    let large = |x: f32| square(x.abs() / f32::from(MOST)) * count > LARGE * sum;
    for (x, dst) in part.chunks_exact(BLOCK).zip(dst.chunks_exact_mut(BYTES)) {
        Q8aBlock::with_outliers(x, large).write(dst);
    }
}

fn decode(src: &[u8], dst: &mut [f64]) {
    for (block, dst) in blocks(src).zip(dst.chunks_exact_mut(BLOCK)) {
        for (i, x) in dst.iter_mut().enumerate() {
            *x = f64::from(block.codes[i]) * f64::from(block.scale) + f64::from(block.outliers[i]);
        }
    }
}
