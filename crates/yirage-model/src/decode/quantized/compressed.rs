//! Whole numbers of `compressed-tensors`: packed into words along the inputs (`pack-quantized`) or in bytes of their own
//! (`int-quantized`), with scales for each group of inputs, each output, or the whole; weight = scale * (number - zero).

use super::float_type::{PartType, SCALES};
use super::integer::{IntegerDecoder, IntegerWeight};
use super::words::{code, word};
use super::{QuantizedModule, QuantizedWeight};
use crate::error::ModelError;
use serde_json::Value;
use std::ops::Range;

pub(super) const PARTS: &[&str] =
    &[".weight_packed", ".weight_scale", ".weight_zero_point", ".weight_shape", ".weight_g_idx"];
pub(super) const BYTES: &[&str] = &[".weight", ".weight_scale", ".weight_zero_point"];

/// Codes in words, numbers one half of their range above zero.
#[derive(Debug)]
struct WordNumbers {
    rows: usize,
    width: usize,
    bits: u32,
    /// Inputs that share a scale, and scales of a row.
    group: usize,
    groups: usize,
    /// Whether all outputs share the scales.
    shared: bool,
    scales: PartType,
    zeros: bool,
}

impl WordNumbers {
    fn per_word(&self) -> usize {
        32 / self.bits as usize
    }

    /// The zero point, which is packed as numbers are, but down the outputs.
    fn zero(&self, parts: &[&[u8]], row: usize, group: usize) -> i16 {
        let packed = word(parts[2], row / self.per_word() * self.groups + group);
        code(packed, self.bits, row % self.per_word()) - (1 << (self.bits - 1))
    }
}

impl IntegerWeight for WordNumbers {
    fn width(&self) -> usize {
        self.width
    }

    fn group(&self) -> Option<usize> {
        Some(self.group)
    }

    fn scales(&self) -> (usize, PartType) {
        (1, self.scales)
    }

    fn scale_at(&self, _: &[&[u8]], row: usize, column: usize) -> usize {
        let row = if self.shared { 0 } else { row };
        row * self.groups + column / self.group
    }

    fn range(&self, parts: &[&[u8]]) -> (i16, i16) {
        let half = 1i16 << (self.bits - 1);
        if !self.zeros {
            return (-half, half - 1);
        }
        let of_row = |row| (0..self.groups).map(move |group| self.zero(parts, row, group));
        let zeros = (0..self.rows).flat_map(of_row);
        let (least, most) = zeros.fold((half, -half), |(least, most), zero| (least.min(zero), most.max(zero)));
        (-half - most, half - 1 - least)
    }

    fn numbers(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [i16]) {
        let (words, half) = (self.width.div_ceil(self.per_word()), 1 << (self.bits - 1));
        let mut zero = 0;
        for (column, number) in columns.clone().zip(out) {
            if self.zeros && (column == columns.start || column % self.group == 0) {
                zero = self.zero(parts, row, column / self.group);
            }
            let packed = word(parts[0], row * words + column / self.per_word());
            *number = code(packed, self.bits, column % self.per_word()) - half - zero;
        }
    }
}

/// A byte for each number.
#[derive(Debug)]
struct ByteNumbers {
    width: usize,
    group: usize,
    groups: usize,
    shared: bool,
    scales: PartType,
}

impl IntegerWeight for ByteNumbers {
    fn width(&self) -> usize {
        self.width
    }

    fn group(&self) -> Option<usize> {
        Some(self.group)
    }

    fn scales(&self) -> (usize, PartType) {
        (1, self.scales)
    }

    fn scale_at(&self, _: &[&[u8]], row: usize, column: usize) -> usize {
        let row = if self.shared { 0 } else { row };
        row * self.groups + column / self.group
    }

    fn range(&self, _: &[&[u8]]) -> (i16, i16) {
        (-128, 127)
    }

    fn numbers(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [i16]) {
        let stored = &parts[0][row * self.width..][columns];
        out.iter_mut().zip(stored).for_each(|(number, &byte)| *number = i16::from(byte as i8));
    }
}

/// How many inputs share a scale, how many scales a row has, whether rows share them, and what they are.
fn scales(
    module: &QuantizedModule<'_>,
    rows: usize,
    width: usize,
) -> Result<(usize, usize, bool, PartType), ModelError> {
    let part = module.typed(".weight_scale", SCALES)?;
    let of_rows = |groups: usize| (width.div_ceil(groups), groups, false, part.ty);
    let stated = module.group_setting("group_size")?.and_then(Value::as_u64).filter(|&n| n > 0);
    match *part.shape {
        [] | [1] | [1, 1] => Ok((width, 1, true, part.ty)),
        [n] if n == rows => Ok(of_rows(1)),
        [n, 1] if n == rows => Ok(of_rows(1)),
        [n, groups] if n == rows && (2..=width).contains(&groups) => {
            let (group, found, ..) = of_rows(groups);
            let group = stated.map_or(group, |n| n as usize);
            if width.div_ceil(group) == found {
                return Ok((group, groups, false, part.ty));
            }
            let expected = format!("{} scales a row, for {width} inputs in groups of {group}", width.div_ceil(group));
            Err(module.misfit(".weight_scale", expected, format!("the shape {:?}", part.shape)))
        }
        _ => {
            let expected = format!("a scale, one for each of {rows} rows, or some for each row");
            Err(module.misfit(".weight_scale", expected, format!("the shape {:?}", part.shape)))
        }
    }
}

pub(super) fn is(module: &QuantizedModule<'_>) -> bool {
    module.get(".weight_shape").is_some() || module.get(".weight_packed").is_some_and(|p| p.ty == PartType::I32)
}

pub(super) fn read(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    if let Some(format) = module.setting("format").and_then(Value::as_str).filter(|&f| f != "pack-quantized") {
        let why =
            "pack-quantized, int-quantized, float-quantized, nvfp4-pack-quantized and mxfp4-pack-quantized are read";
        return Err(module.unsupported(&format!("compressed-tensors in the layout {format:?}"), why));
    }
    if module.get(".weight_g_idx").is_some() {
        return Err(module.unsupported("compressed-tensors with inputs in the order of activations", "weight_g_idx"));
    }
    let bits = match module.group_setting("num_bits")?.and_then(Value::as_u64) {
        Some(bits @ (2 | 4 | 8)) => bits as u32,
        other => {
            let found = other.map_or("an unknown number of".to_owned(), |bits| bits.to_string());
            return Err(module.unsupported(&format!("compressed-tensors with {found} bits"), "2, 4 and 8 are read"));
        }
    };
    let codes = module.typed(".weight_packed", &[PartType::I32])?;
    let [rows, words] = module.matrix(".weight_packed", codes)?;
    let per_word = 32 / bits as usize;
    let width = stated_width(module, rows, words.saturating_mul(per_word), per_word)?;
    let (group, groups, shared, scales) = scales(module, rows, width)?;
    let zeros = module.get(".weight_zero_point").is_some();
    let mut parts = vec![".weight_packed", ".weight_scale"];
    if zeros {
        let (rows, whole) = (rows / per_word, rows.is_multiple_of(per_word));
        if !whole || shared {
            let expected = format!("outputs in multiples of {per_word}, each with scales of its own, for zero points");
            return Err(module.misfit(".weight_zero_point", expected, format!("{:?} codes", codes.shape)));
        }
        module.shaped(".weight_zero_point", &[PartType::I32], &[rows, groups])?;
        parts.push(".weight_zero_point");
    }
    let of = if zeros { ", zero points" } else { "" };
    let name = format!("compressed-tensors {bits}-bit, groups of {group}{of}");
    let numbers = WordNumbers { rows, width, bits, group, groups, shared, scales, zeros };
    Ok(QuantizedWeight { name, shape: vec![rows, width], parts, decoder: Box::new(IntegerDecoder(numbers)) })
}

/// Inputs as `.weight_shape` says, where it stands: the last word of a row may be filled in part.
fn stated_width(module: &QuantizedModule<'_>, rows: usize, most: usize, per_word: usize) -> Result<usize, ModelError> {
    let Some(_) = module.get(".weight_shape") else { return Ok(most) };
    let part = module.shaped(".weight_shape", &[PartType::I64, PartType::I32], &[2])?;
    let bytes = part.bytes.len() / 2;
    let number = |at: usize| part.bytes[at * bytes..][..bytes].iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let (stated_rows, width) = (number(0), number(1));
    let fits = stated_rows == rows as u64 && (width..width.saturating_add(per_word as u64)).contains(&(most as u64));
    if fits && width > 0 {
        return Ok(width as usize);
    }
    let expected = format!("{rows} rows and up to {most} columns, as the codes have");
    Err(module.misfit(".weight_shape", expected, format!("{stated_rows} and {width}")))
}

pub(super) fn is_bytes(module: &QuantizedModule<'_>) -> bool {
    module.get(".weight").is_some_and(|p| p.ty == PartType::I8) && module.get(".SCB").is_none()
}

pub(super) fn read_bytes(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    if module.get(".weight_zero_point").is_some() {
        return Err(module.unsupported("compressed-tensors of bytes with zero points", "symmetric numbers are read"));
    }
    let [rows, width] = module.matrix(".weight", module.typed(".weight", &[PartType::I8])?)?;
    let (group, groups, shared, scales) = scales(module, rows, width)?;
    let name = format!("int8, scales for {group} inputs");
    let numbers = ByteNumbers { width, group, groups, shared, scales };
    let parts = vec![".weight", ".weight_scale"];
    Ok(QuantizedWeight { name, shape: vec![rows, width], parts, decoder: Box::new(IntegerDecoder(numbers)) })
}
