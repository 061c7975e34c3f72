//! bitsandbytes: numbers of four bits that stand for the values of a table, times a scale for each block of the matrix read
//! as one row, which may be of eight bits itself; and rows of bytes with a scale that 127 stands for.

use super::float_scaled::{FloatDecoder, FloatWeight};
use super::float_type::PartType;
use super::{QuantizedModule, QuantizedWeight};
use crate::error::ModelError;
use serde_json::Value;
use std::ops::Range;

const NF4: &str = ".weight.quant_state.bitsandbytes__nf4";
const FP4: &str = ".weight.quant_state.bitsandbytes__fp4";
const NESTED: [&str; 2] = [".weight.nested_absmax", ".weight.nested_quant_map"];

pub(super) const FOUR: &[&str] = &[".weight", ".weight.absmax", ".weight.quant_map", NESTED[0], NESTED[1], NF4, FP4];
pub(super) const EIGHT: &[&str] = &[".weight", ".SCB", ".weight_format"];

/// Scales of scales.
#[derive(Debug)]
struct NestedScales {
    block: usize,
    offset: f32,
}

#[derive(Debug)]
struct FourBits {
    width: usize,
    block: usize,
    nested: Option<NestedScales>,
}

impl FourBits {
    fn scale(&self, parts: &[&[u8]], block: usize) -> f32 {
        let float = |part: usize, at: usize| PartType::F32.float(parts[part], at);
        match &self.nested {
            None => float(1, block),
            Some(nested) => {
                let own = float(4, usize::from(parts[1][block]));
                own * float(3, block / nested.block) + nested.offset
            }
        }
    }
}

impl FloatWeight for FourBits {
    fn width(&self) -> usize {
        self.width
    }

    fn is_bf16(&self, _: &[&[u8]]) -> bool {
        false
    }

    fn values(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [f32]) {
        let first = row * self.width + columns.start;
        let mut scale = 0.0;
        for (at, value) in (first..).zip(out) {
            if at == first || at % self.block == 0 {
                scale = self.scale(parts, at / self.block);
            }
            // The first of two is in the high bits.
            let code = parts[0][at / 2] >> (4 - 4 * (at % 2)) & 15;
            *value = PartType::F32.float(parts[2], usize::from(code)) * scale;
        }
    }
}

#[derive(Debug)]
struct EightBits {
    width: usize,
}

impl FloatWeight for EightBits {
    fn width(&self) -> usize {
        self.width
    }

    fn is_bf16(&self, _: &[&[u8]]) -> bool {
        false
    }

    fn values(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [f32]) {
        const ONE_OF_127: f32 = 7.874_016e-3;
        let scale = PartType::F32.float(parts[1], row);
        let stored = &parts[0][row * self.width..][columns];
        for (value, &byte) in out.iter_mut().zip(stored) {
            // In this order, as the library rounds.
            *value = f32::from(byte as i8) * scale * ONE_OF_127;
        }
    }
}

fn state(module: &QuantizedModule<'_>) -> Option<&'static str> {
    [NF4, FP4].into_iter().find(|end| module.get(end).is_some())
}

pub(super) fn is_four(module: &QuantizedModule<'_>) -> bool {
    state(module).is_some() || module.get(".weight.absmax").is_some()
}

pub(super) fn read_four(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    let end = state(module).unwrap_or(NF4);
    let settings: Value = serde_json::from_slice(module.typed(end, &[PartType::U8])?.bytes)
        .map_err(|e| module.misfit(end, "a JSON object of settings".into(), e.to_string()))?;
    let number = |key: &str| settings[key].as_u64().and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0);
    let needed = |key: &str| {
        number(key).ok_or_else(|| module.misfit(end, format!("a number above 0 as {key}"), settings[key].to_string()))
    };
    let shape = |at: usize| settings["shape"].get(at).and_then(Value::as_u64).filter(|&n| n > 0);
    let (Some(rows), Some(width), 2) = (shape(0), shape(1), settings["shape"].as_array().map_or(0, Vec::len)) else {
        return Err(module.misfit(end, "two dimensions as shape".into(), settings["shape"].to_string()));
    };
    let (rows, width, block) = (rows as usize, width as usize, needed("blocksize")?);
    let elements = rows.saturating_mul(width);
    let codes = module.typed(".weight", &[PartType::U8])?;
    if codes.bytes.len() != elements.div_ceil(2) {
        let expected = format!("{} bytes for {rows} x {width} weights", elements.div_ceil(2));
        return Err(module.misfit(".weight", expected, codes.bytes.len().to_string()));
    }
    let blocks = elements.div_ceil(block);
    module.shaped(".weight.quant_map", &[PartType::F32], &[16])?;
    let mut parts = vec![".weight", ".weight.absmax", ".weight.quant_map"];
    let nested = match module.get(NESTED[0]) {
        None => {
            module.shaped(".weight.absmax", &[PartType::F32], &[blocks])?;
            None
        }
        Some(_) => {
            let nested = needed("nested_blocksize")?;
            module.shaped(".weight.absmax", &[PartType::U8], &[blocks])?;
            module.shaped(NESTED[0], &[PartType::F32], &[blocks.div_ceil(nested)])?;
            module.shaped(NESTED[1], &[PartType::F32], &[256])?;
            parts.extend(NESTED);
            let offset = settings["nested_offset"].as_f64().ok_or_else(|| {
                module.misfit(end, "a number as nested_offset".into(), settings["nested_offset"].to_string())
            })?;
            Some(NestedScales { block: nested, offset: offset as f32 })
        }
    };
    let kind = if end == NF4 { "NF4" } else { "FP4" };
    let of = nested.as_ref().map_or(String::new(), |n| format!(", scales of 8 bits for {} from {}", n.block, n.offset));
    let name = format!("bitsandbytes {kind}, scales for {block}{of}");
    let four = FourBits { width, block, nested };
    Ok(QuantizedWeight { name, shape: vec![rows, width], parts, decoder: Box::new(FloatDecoder(four)) })
}

pub(super) fn is_eight(module: &QuantizedModule<'_>) -> bool {
    module.get(".SCB").is_some()
}

pub(super) fn read_eight(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    let [rows, width] = module.matrix(".weight", module.typed(".weight", &[PartType::I8])?)?;
    module.shaped(".SCB", &[PartType::F32], &[rows])?;
    if let Some(layout) = module.get(".weight_format")
        && layout.bytes.iter().any(|&b| b != 0)
    {
        return Err(module.unsupported("bitsandbytes int8 in another layout than rows", "weight_format is not 0"));
    }
    let (name, parts) = ("bitsandbytes int8".to_owned(), vec![".weight", ".SCB"]);
    Ok(QuantizedWeight { name, shape: vec![rows, width], parts, decoder: Box::new(FloatDecoder(EightBits { width })) })
}
