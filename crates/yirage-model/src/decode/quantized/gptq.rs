//! GPTQ: words of codes down the columns, zero points and scales for each group of inputs, and, where the inputs were
//! ordered by their activations, the group of each input; weight = scale * (code - zero).

use super::float_type::{PartType, SCALES};
use super::integer::{IntegerDecoder, IntegerWeight};
use super::words::{code, word};
use super::{ModulePart, QuantizedModule, QuantizedWeight};
use crate::error::ModelError;
use std::ops::Range;

pub(super) const PARTS: &[&str] = &[".qweight", ".qzeros", ".scales", ".g_idx"];

#[derive(Debug)]
struct Gptq {
    rows: usize,
    width: usize,
    bits: u32,
    group: usize,
    scales: PartType,
    /// What is added to a stored zero point: the first version of the format stores one less.
    zero_offset: i16,
    /// Whether the group of each input stands in a part of its own.
    ordered: bool,
}

impl Gptq {
    fn group_of(&self, parts: &[&[u8]], column: usize) -> usize {
        if self.ordered { word(parts[3], column) as usize } else { column / self.group }
    }

    /// What one less than zero is stored as wraps around, as a packer's subtraction does.
    fn zero(&self, word: u32, at: usize) -> i16 {
        (code(word, self.bits, at) + self.zero_offset) & ((1 << self.bits) - 1)
    }
}

impl IntegerWeight for Gptq {
    fn width(&self) -> usize {
        self.width
    }

    fn group(&self) -> Option<usize> {
        (!self.ordered).then_some(self.group)
    }

    fn scales(&self) -> (usize, PartType) {
        (2, self.scales)
    }

    fn scale_at(&self, parts: &[&[u8]], row: usize, column: usize) -> usize {
        self.group_of(parts, column) * self.rows + row
    }

    fn range(&self, parts: &[&[u8]]) -> (i16, i16) {
        let per_word = 32 / self.bits as usize;
        let words = (0..parts[1].len() / 4).map(|at| word(parts[1], at));
        let zeros = words.flat_map(|word| (0..per_word).map(move |at| self.zero(word, at)));
        let (least, most) = zeros.fold((i16::MAX, 0), |(least, most), zero| (least.min(zero), most.max(zero)));
        (-most, (1 << self.bits) - 1 - least)
    }

    fn numbers(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [i16]) {
        let per_word = 32 / self.bits as usize;
        let zero_words = self.rows / per_word;
        let (mut packed, mut group, mut zero) = (0, usize::MAX, 0);
        for (column, number) in columns.clone().zip(out) {
            if column % per_word == 0 || column == columns.start {
                packed = word(parts[0], column / per_word * self.rows + row);
            }
            let of = self.group_of(parts, column);
            if of != group {
                group = of;
                zero = self.zero(word(parts[1], group * zero_words + row / per_word), row % per_word);
            }
            *number = code(packed, self.bits, column % per_word) - zero;
        }
    }
}

pub(super) fn read(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    let bits = bits(module)?;
    let per_word = 32 / bits as usize;
    let codes = module.typed(".qweight", &[PartType::I32])?;
    let [words, rows] = module.matrix(".qweight", codes)?;
    let width = words.saturating_mul(per_word);
    if !rows.is_multiple_of(per_word) {
        let expected = format!("columns in multiples of {per_word}, of which a word of .qzeros has the zero points");
        return Err(module.misfit(".qweight", expected, format!("{rows} columns")));
    }
    let group = match module.whole("group_size", None)? {
        -1 => width,
        n @ 1.. => n as usize,
        n => return Err(module.misconfigured("group_size", "-1 or a number above 0".into(), n.to_string())),
    };
    let groups = width.div_ceil(group);
    let scales = module.shaped(".scales", SCALES, &[groups, rows])?;
    module.shaped(".qzeros", &[PartType::I32], &[groups, rows / per_word])?;
    let zero_offset = zero_offset(module)?;
    let mut parts = vec![".qweight", ".qzeros", ".scales"];
    let ordered = match module.get(".g_idx") {
        Some(_) => is_ordered(module, module.shaped(".g_idx", &[PartType::I32], &[width])?, group, groups)?,
        None => false,
    };
    if ordered {
        parts.push(".g_idx");
    }
    let order = if ordered { ", inputs in the order of their activations" } else { "" };
    let name = format!("GPTQ {bits}-bit, groups of {group}, zeros from {zero_offset}{order}");
    let gptq = Gptq { rows, width, bits, group, scales: scales.ty, zero_offset, ordered };
    Ok(QuantizedWeight { name, shape: vec![rows, width], parts, decoder: Box::new(IntegerDecoder(gptq)) })
}

fn bits(module: &QuantizedModule<'_>) -> Result<u32, ModelError> {
    match module.whole("bits", None)? {
        bits @ (2 | 4 | 8) => Ok(bits as u32),
        bits => Err(module.unsupported(&format!("GPTQ with {bits} bits"), "2, 4 and 8 bits are read")),
    }
}

fn zero_offset(module: &QuantizedModule<'_>) -> Result<i16, ModelError> {
    match module.setting("checkpoint_format").map(|v| v.as_str().unwrap_or("no string")) {
        None | Some("gptq") => Ok(1),
        Some("gptq_v2") => Ok(0),
        Some(other) => Err(module.unsupported(&format!("GPTQ in the layout {other:?}"), "gptq and gptq_v2 are read")),
    }
}

/// Whether inputs belong to other groups than their places say. Every group must be one that has scales.
fn is_ordered(
    module: &QuantizedModule<'_>,
    part: &ModulePart<'_>,
    group: usize,
    groups: usize,
) -> Result<bool, ModelError> {
    let of = |column: usize| word(part.bytes, column) as usize;
    let columns = 0..part.shape[0];
    if let Some(column) = columns.clone().find(|&column| of(column) >= groups) {
        let found = format!("{} for input {column}", of(column) as u32 as i32);
        return Err(module.misfit(".g_idx", format!("groups from 0 to {}", groups - 1), found));
    }
    Ok(columns.into_iter().any(|column| of(column) != column / group))
}
