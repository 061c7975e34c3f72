//! MXFP4 in `compressed-tensors`: two E2M1 numbers a byte, the first in the low bits, and an exponent for each 32 of a row:
//! the blocks of the format that is computed with, in another order.

use super::float_type::PartType;
use super::{QuantizedModule, QuantizedWeight};
use crate::decode::TensorDecoder;
use crate::error::ModelError;
use std::ops::Range;
use yirage_ir::Format;

pub(super) const PARTS: &[&str] = &[".weight_packed", ".weight_scale"];

#[derive(Debug)]
struct Mxfp4;

impl TensorDecoder for Mxfp4 {
    fn format(&self, _: &[&[u8]]) -> Format {
        Format::MXFP4
    }

    fn decode(&self, parts: &[&[u8]], elements: Range<usize>, format: Format, out: &mut Vec<u8>) {
        if format == Format::F32 {
            let mut values = [0f32; 32];
            for at in elements.clone() {
                if at == elements.start || at % 32 == 0 {
                    (Format::MXFP4.info().decode)(&block(parts, at / 32), &mut values);
                }
                out.extend_from_slice(&values[at % 32].to_le_bytes());
            }
            return;
        }
        for at in elements.start / 32..elements.end / 32 {
            out.extend_from_slice(&block(parts, at));
        }
    }
}

/// A block of the format that is computed with.
fn block(parts: &[&[u8]], at: usize) -> [u8; 17] {
    let pairs = &parts[0][16 * at..][..16];
    let nibble = |i: usize| pairs[i / 2] >> (4 * (i % 2)) & 15;
    std::array::from_fn(|i| if i == 0 { parts[1][at] } else { nibble(i - 1) | nibble(i + 15) << 4 })
}

pub(super) fn is(module: &QuantizedModule<'_>) -> bool {
    module.get(".weight_packed").is_some_and(|part| part.ty == PartType::U8)
}

pub(super) fn read(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    let codes = module.typed(".weight_packed", &[PartType::U8])?;
    let [rows, bytes] = module.matrix(".weight_packed", codes)?;
    let width = bytes.saturating_mul(2);
    if !width.is_multiple_of(32) {
        return Err(module.misfit(".weight_packed", "rows of a multiple of 16 bytes".into(), format!("{bytes} bytes")));
    }
    module.shaped(".weight_scale", &[PartType::U8, PartType::E8M0], &[rows, width / 32])?;
    let (name, parts) = ("MXFP4 in pairs".to_owned(), PARTS.to_vec());
    Ok(QuantizedWeight { name, shape: vec![rows, width], parts, decoder: Box::new(Mxfp4) })
}
