//! Values times a scale that lies in another tensor, one for all of them or one for each matrix: as GGUF files have NVFP4
//! weights whose scales the blocks' own do not reach.

use super::GgmlDecoder;
use crate::decode::TensorDecoder;
use std::ops::Range;
use yirage_ir::Format;

/// A tensor of bf16 values and its scales of f32: the first part and the second.
#[derive(Debug)]
pub(crate) struct ScaledValues {
    /// What decodes the values.
    pub(crate) values: GgmlDecoder,
    /// Elements that share a scale.
    pub(crate) each: usize,
}

impl TensorDecoder for ScaledValues {
    fn format(&self, _: &[&[u8]]) -> Format {
        Format::F32
    }

    fn decode(&self, parts: &[&[u8]], elements: Range<usize>, _: Format, out: &mut Vec<u8>) {
        let mut halves = Vec::new();
        self.values.decode(&parts[..1], elements.clone(), Format::BF16, &mut halves);
        for (at, half) in elements.zip(halves.chunks_exact(2)) {
            let scale: [u8; 4] = std::array::from_fn(|i| parts[1][at / self.each * 4 + i]);
            let value = f32::from_bits(u32::from(u16::from_le_bytes([half[0], half[1]])) << 16);
            out.extend_from_slice(&(value * f32::from_le_bytes(scale)).to_le_bytes());
        }
    }
}
