//! HQQ: codes of 1, 2, 3, 4 or 8 bits of the matrix in groups, each with a scale and a zero point that is a float; weight =
//! (code - zero) * scale. The codes are a matrix of their own, whose upper rows are in the high bits and whose lower rows in
//! the low bits of the same elements.

use super::float_scaled::{FloatDecoder, FloatWeight};
use super::float_type::{PartType, SCALES};
use super::words::word;
use super::{QuantizedModule, QuantizedWeight};
use crate::error::ModelError;
use std::ops::Range;

pub(super) const PARTS: &[&str] = &[
    ".W_q",
    ".scale",
    ".zero",
    ".shape",
    ".nbits",
    ".axis",
    ".group_size",
    ".packing",
    ".unpack_view_dtype",
    ".view_as_float",
    ".quant_scale",
    ".quant_zero",
    ".compute_dtype",
    ".offload_meta",
    ".encoded_state_dict",
    ".stores_quant_config",
    ".channel_wise",
    ".optimize",
    ".round_zero",
];

#[derive(Debug)]
struct Hqq {
    width: usize,
    bits: u32,
    /// Rows of stored elements, and their width.
    stored: [usize; 2],
    /// Whether a group is a column of the codes' matrix and not a row.
    down: bool,
    scales: PartType,
    zeros: PartType,
}

impl Hqq {
    fn code(&self, part: &[u8], row: usize, column: usize) -> f32 {
        let [rows, width] = self.stored;
        let (at, plane) = (row % rows * width + column, (row / rows) as u32);
        if self.bits == 3 {
            return (word(part, at) >> (27 - 3 * plane) & 7) as f32;
        }
        let code = u32::from(part[at]) >> (8 - self.bits * (plane + 1)) & ((1 << self.bits) - 1);
        code as f32
    }
}

impl FloatWeight for Hqq {
    fn width(&self) -> usize {
        self.width
    }

    fn is_bf16(&self, _: &[&[u8]]) -> bool {
        false
    }

    fn values(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [f32]) {
        let first = row * self.width + columns.start;
        for (at, value) in (first..).zip(out) {
            let (row, column) = (at / self.stored[1], at % self.stored[1]);
            let group = if self.down { column } else { row };
            let zero = self.zeros.float(parts[2], group);
            *value = (self.code(parts[0], row, column) - zero) * self.scales.float(parts[1], group);
        }
    }
}

pub(super) fn read(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    let number = |end: &str| Ok::<u32, ModelError>(word(module.shaped(end, &[PartType::I32], &[])?.bytes, 0));
    let bits = match number(".nbits")? {
        bits @ (1 | 2 | 3 | 4 | 8) => bits,
        bits => return Err(module.unsupported(&format!("HQQ with {bits} bits"), "1, 2, 3, 4 and 8 are read")),
    };
    let down = match number(".axis")? {
        axis @ (0 | 1) => axis == 0,
        axis => return Err(module.misfit(".axis", "0 or 1".into(), axis.to_string())),
    };
    let shape = module.shaped(".shape", &[PartType::I64], &[2])?;
    let dimension = |at: usize| shape.bytes[8 * at..][..8].iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let [rows, width] = [0, 1].map(|at| usize::try_from(dimension(at)).unwrap_or(usize::MAX));
    let elements = rows.saturating_mul(width);
    let group = number(".group_size")? as usize;
    if elements == 0 || group == 0 || !elements.is_multiple_of(group) {
        let expected = format!("a number that divides the {rows} x {width} weights");
        return Err(module.misfit(".group_size", expected, group.to_string()));
    }
    let groups = elements / group;
    let (high, wide) = if down { (group, groups) } else { (groups, group) };
    let (ty, planes) = if bits == 3 { (PartType::I32, 10) } else { (PartType::U8, 8 / bits as usize) };
    if bits != 3 && !high.is_multiple_of(planes) {
        let expected = format!("a multiple of {planes} rows of codes");
        return Err(module.misfit(".W_q", expected, high.to_string()));
    }
    let stored = [high.div_ceil(planes), wide];
    module.shaped(".W_q", &[ty], &stored)?;
    let of_groups = if down { [1, groups] } else { [groups, 1] };
    let scales = module.shaped(".scale", SCALES, &of_groups)?.ty;
    let zeros = module.shaped(".zero", SCALES, &of_groups)?.ty;
    let along = if down { "columns" } else { "rows" };
    let name = format!("HQQ {bits}-bit, groups of {group} in {along}");
    let hqq = Hqq { width, bits, stored, down, scales, zeros };
    let parts = vec![".W_q", ".scale", ".zero"];
    Ok(QuantizedWeight { name, shape: vec![rows, width], parts, decoder: Box::new(FloatDecoder(hqq)) })
}
