//! NVFP4 in safetensors: two E2M1 numbers a byte, the first in the low bits, an E4M3 scale for each 16 of a row, and one
//! scale for all, by which `compressed-tensors` divides and others multiply; weight = (scale of 16 and of all) * number.

use super::float_scaled::{FloatDecoder, FloatWeight};
use super::float_type::{PartType, e4m3, keeps_bf16};
use super::{QuantizedModule, QuantizedWeight};
use crate::error::ModelError;
use std::ops::Range;

pub(super) const PACKED: &[&str] = &[".weight_packed", ".weight_scale", ".weight_global_scale"];
pub(super) const PLAIN: &[&str] = &[".weight", ".weight_scale", ".weight_scale_2"];

/// The E2M1 numbers.
const NUMBERS: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

#[derive(Debug)]
struct Nvfp4 {
    width: usize,
    divides: bool,
}

impl FloatWeight for Nvfp4 {
    fn width(&self) -> usize {
        self.width
    }

    fn is_bf16(&self, parts: &[&[u8]]) -> bool {
        let all = PartType::F32.float(parts[2], 0);
        // A power of two, by which scales of four bits stay such.
        all.to_bits() & 0x007f_ffff == 0 && keeps_bf16(all)
    }

    fn values(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [f32]) {
        let all = PartType::F32.float(parts[2], 0);
        let mut scale = 0.0;
        for (column, value) in columns.clone().zip(out) {
            if column == columns.start || column % 16 == 0 {
                let own = e4m3(parts[1][(row * self.width + column) / 16]);
                scale = if self.divides { own / all } else { own * all };
            }
            let code = parts[0][(row * self.width + column) / 2] >> (4 * (column % 2)) & 15;
            *value = scale * NUMBERS[usize::from(code)];
        }
    }
}

pub(super) fn is_packed(module: &QuantizedModule<'_>) -> bool {
    module.get(".weight_global_scale").is_some()
}

pub(super) fn read_packed(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    read(module, PACKED, true)
}

pub(super) fn is_plain(module: &QuantizedModule<'_>) -> bool {
    module.get(".weight_scale_2").is_some()
}

pub(super) fn read_plain(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    read(module, PLAIN, false)
}

fn read(module: &QuantizedModule<'_>, parts: &[&'static str], divides: bool) -> Result<QuantizedWeight, ModelError> {
    let codes = module.typed(parts[0], &[PartType::U8])?;
    let [rows, bytes] = module.matrix(parts[0], codes)?;
    let width = bytes.saturating_mul(2);
    if !width.is_multiple_of(16) {
        return Err(module.misfit(parts[0], "rows of a multiple of 8 bytes".into(), format!("{bytes} bytes")));
    }
    module.shaped(parts[1], &[PartType::E4M3], &[rows, width / 16])?;
    let all = module.typed(parts[2], &[PartType::F32])?;
    if all.bytes.len() != 4 {
        return Err(module.misfit(parts[2], "one scale".into(), format!("the shape {:?}", all.shape)));
    }
    let nvfp4 = Nvfp4 { width, divides };
    let name = if divides { "NVFP4, divided by a scale of all" } else { "NVFP4, times a scale of all" };
    Ok(QuantizedWeight {
        name: name.to_owned(),
        shape: vec![rows, width],
        parts: parts.to_vec(),
        decoder: Box::new(FloatDecoder(nvfp4)),
    })
}
