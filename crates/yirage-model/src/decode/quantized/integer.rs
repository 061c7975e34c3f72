//! Weights that are a whole number times a scale. Where 32 neighbours share a scale that is an f16, they are a block of
//! Q4_0, Q5_0 or Q8_0, whichever holds the numbers; else they are f32.

use super::float_type::PartType;
use crate::decode::TensorDecoder;
use half::f16;
use std::fmt::Debug;
use std::ops::Range;
use yirage_ir::Format;

/// A matrix of whole numbers with scales.
pub(super) trait IntegerWeight: Debug + Send + Sync {
    /// Elements of a row.
    fn width(&self) -> usize;

    /// Neighbours of a row that share a scale, from any multiple of that number on; `None` where any two may differ.
    fn group(&self) -> Option<usize>;

    /// Which part holds the scales, and what they are.
    fn scales(&self) -> (usize, PartType);

    /// Index of an element's scale.
    fn scale_at(&self, parts: &[&[u8]], row: usize, column: usize) -> usize;

    /// The smallest and the largest whole number that there may be.
    fn range(&self, parts: &[&[u8]]) -> (i16, i16);

    /// The whole numbers of some columns of a row.
    fn numbers(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [i16]);
}

/// The decoder of such a matrix.
#[derive(Debug)]
pub(super) struct IntegerDecoder<W>(pub(super) W);

impl<W: IntegerWeight> IntegerDecoder<W> {
    fn scale(&self, parts: &[&[u8]], row: usize, column: usize) -> f32 {
        let (part, ty) = self.0.scales();
        ty.float(parts[part], self.0.scale_at(parts, row, column))
    }

    fn put_f32(&self, parts: &[&[u8]], row: usize, first: usize, numbers: &[i16], out: &mut Vec<u8>) {
        let group = self.0.group().unwrap_or(1);
        let mut scale = 0.0;
        for (column, &number) in (first..).zip(numbers) {
            if column == first || column % group == 0 {
                scale = self.scale(parts, row, column);
            }
            out.extend_from_slice(&(scale * f32::from(number)).to_le_bytes());
        }
    }
}

impl<W: IntegerWeight> TensorDecoder for IntegerDecoder<W> {
    fn format(&self, parts: &[&[u8]]) -> Format {
        let (part, ty) = self.0.scales();
        let is_half = |scale: f32| f16::from_f32(scale).to_f32() == scale;
        let whole = self.0.group().is_some_and(|group| group.is_multiple_of(32)) && self.0.width().is_multiple_of(32);
        if !whole || !ty.floats(parts[part]).all(is_half) {
            return Format::F32;
        }
        match self.0.range(parts) {
            (-8.., ..=7) => Format::Q4_0,
            (-16.., ..=15) => Format::Q5_0,
            (-128.., ..=127) => Format::Q8_0,
            _ => Format::F32,
        }
    }

    fn decode(&self, parts: &[&[u8]], elements: Range<usize>, format: Format, out: &mut Vec<u8>) {
        let width = self.0.width();
        let mut numbers = vec![0i16; width.min(elements.len())];
        let mut at = elements.start;
        while at < elements.end {
            let (row, first) = (at / width, at % width);
            let end = width.min(first + (elements.end - at));
            let numbers = &mut numbers[..end - first];
            self.0.numbers(parts, row, first..end, numbers);
            at += numbers.len();
            if format == Format::F32 {
                self.put_f32(parts, row, first, numbers, out);
                continue;
            }
            for (column, block) in (first..).step_by(32).zip(numbers.chunks_exact(32)) {
                let scale = f16::from_f32(self.scale(parts, row, column));
                out.extend_from_slice(&scale.to_le_bytes());
                put_block(block, format, out);
            }
        }
    }
}

/// The codes of a block behind its scale.
fn put_block(numbers: &[i16], format: Format, out: &mut Vec<u8>) {
    let nibbles =
        |zero: i16| (0..16).map(move |i| (numbers[i] + zero) as u8 & 15 | ((numbers[i + 16] + zero) as u8) << 4);
    match format {
        Format::Q4_0 => out.extend(nibbles(8)),
        Format::Q5_0 => {
            let fifth = |bits, (i, n): (usize, &i16)| bits | ((n + 16) as u32 >> 4 & 1) << i;
            out.extend_from_slice(&numbers.iter().enumerate().fold(0u32, fifth).to_le_bytes());
            out.extend(nibbles(16));
        }
        _ => out.extend(numbers.iter().map(|&n| n as u8)),
    }
}
