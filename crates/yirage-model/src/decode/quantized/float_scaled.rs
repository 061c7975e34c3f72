//! Weights that are small floats times scales: bf16 where every product is one, else f32, each product rounded once.

use crate::decode::TensorDecoder;
use std::fmt::Debug;
use std::ops::Range;
use yirage_ir::Format;

/// A matrix of floats that are made one by one.
pub(super) trait FloatWeight: Debug + Send + Sync {
    /// Elements of a row.
    fn width(&self) -> usize;

    /// Whether every value is a bf16.
    fn is_bf16(&self, parts: &[&[u8]]) -> bool;

    /// Some columns of a row.
    fn values(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [f32]);
}

/// The decoder of such a matrix.
#[derive(Debug)]
pub(super) struct FloatDecoder<W>(pub(super) W);

impl<W: FloatWeight> TensorDecoder for FloatDecoder<W> {
    fn format(&self, parts: &[&[u8]]) -> Format {
        if self.0.is_bf16(parts) { Format::BF16 } else { Format::F32 }
    }

    fn decode(&self, parts: &[&[u8]], elements: Range<usize>, format: Format, out: &mut Vec<u8>) {
        let width = self.0.width();
        let mut values = vec![0f32; width.min(elements.len())];
        let mut at = elements.start;
        while at < elements.end {
            let (row, first) = (at / width, at % width);
            let end = width.min(first + (elements.end - at));
            let values = &mut values[..end - first];
            self.0.values(parts, row, first..end, values);
            at += values.len();
            match format {
                // The lower half of every value is zero.
                Format::BF16 => values.iter().for_each(|v| out.extend_from_slice(&v.to_bits().to_le_bytes()[2..])),
                _ => values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes())),
            }
        }
    }
}
