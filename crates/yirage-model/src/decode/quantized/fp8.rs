//! FP8: a byte for each weight, with a scale for each block of the matrix, each row, the whole, or none; weight = scale *
//! number.

use super::float_scaled::{FloatDecoder, FloatWeight};
use super::float_type::{PartType, keeps_bf16};
use super::{ACTIVATIONS, ModulePart, QuantizedModule, QuantizedWeight};
use crate::error::ModelError;
use serde_json::Value;
use std::ops::Range;
use std::sync::OnceLock;

pub(super) const PARTS: &[&str] = &[".weight", ".weight_scale_inv", ".weight_scale"];

const CODES: &[PartType] = &[PartType::E4M3, PartType::E5M2];
const SCALES: &[PartType] = &[PartType::F32, PartType::BF16, PartType::F16, PartType::E8M0];

/// The scales of a matrix: blocks of `rows` times `columns` weights, `line` of them beside each other.
#[derive(Clone, Copy, Debug)]
struct BlockScales {
    ty: PartType,
    rows: usize,
    columns: usize,
    line: usize,
}

/// The numbers that codes of a type of eight bits stand for, once for all tensors.
fn numbers(ty: PartType) -> &'static [f32; 256] {
    static E4M3: OnceLock<[f32; 256]> = OnceLock::new();
    static E5M2: OnceLock<[f32; 256]> = OnceLock::new();
    let table = if ty == PartType::E4M3 { &E4M3 } else { &E5M2 };
    table.get_or_init(|| std::array::from_fn(|code| ty.float(&[code as u8], 0)))
}

#[derive(Debug)]
struct Fp8 {
    width: usize,
    scales: Option<BlockScales>,
    /// What each code stands for.
    numbers: &'static [f32; 256],
}

impl FloatWeight for Fp8 {
    fn width(&self) -> usize {
        self.width
    }

    fn is_bf16(&self, parts: &[&[u8]]) -> bool {
        self.scales.is_none_or(|scales| scales.ty.floats(parts[1]).all(keeps_bf16))
    }

    fn values(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [f32]) {
        let stored = &parts[0][row * self.width..][columns.clone()];
        let mut scale = 1.0;
        for (column, (value, &code)) in columns.clone().zip(out.iter_mut().zip(stored)) {
            if let Some(s) = self.scales
                && (column == columns.start || column % s.columns == 0)
            {
                scale = s.ty.float(parts[1], row / s.rows * s.line + column / s.columns);
            }
            *value = self.numbers[usize::from(code)] * scale;
        }
    }
}

pub(super) fn is(module: &QuantizedModule<'_>) -> bool {
    module.get(".weight").is_some_and(|part| CODES.contains(&part.ty))
}

pub(super) fn read(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    let codes = module.typed(".weight", CODES)?;
    let end = [".weight_scale_inv", ".weight_scale"].into_iter().find(|end| module.get(end).is_some());
    // Without scales, there may be any dimensions, as of a norm.
    let [rows, width] = match end.is_none() && module.method().is_none() {
        true => [1, codes.bytes.len()],
        false => module.matrix(".weight", codes)?,
    };
    let mut parts = vec![".weight"];
    let scales = match end {
        Some(end) => {
            parts.push(end);
            Some(block_scales(module, end, module.typed(end, SCALES)?, [rows, width])?)
        }
        // Weights that were only rounded have no scales; those of a method have.
        None if module.method().is_none() => None,
        None => {
            let end = if module.setting("weight_block_size").is_some() { ".weight_scale_inv" } else { ".weight_scale" };
            module.typed(end, SCALES)?;
            None
        }
    };
    let of = match scales {
        None => "no scales".to_owned(),
        Some(s) => format!("scales for {} x {}", s.rows, s.columns),
    };
    let unused =
        if ACTIVATIONS.iter().any(|end| module.get(end).is_some()) { ", those of activations unused" } else { "" };
    let name = format!("{}, {of}{unused}", codes.ty.name());
    let fp8 = Fp8 { width, scales, numbers: numbers(codes.ty) };
    Ok(QuantizedWeight { name, shape: codes.shape.to_vec(), parts, decoder: Box::new(FloatDecoder(fp8)) })
}

fn block_scales(
    module: &QuantizedModule<'_>,
    end: &str,
    part: &ModulePart<'_>,
    [rows, width]: [usize; 2],
) -> Result<BlockScales, ModelError> {
    let of = |rows, columns, line| Ok(BlockScales { ty: part.ty, rows, columns, line });
    match *part.shape {
        [] | [1] | [1, 1] => return of(rows, width, 1),
        [n] if n == rows => return of(1, width, 1),
        [n, 1] if n == rows => return of(1, width, 1),
        _ => {}
    }
    let [high, wide] = block_size(module)?;
    let expected = [rows.div_ceil(high), width.div_ceil(wide)];
    if part.shape == expected {
        return of(high, wide, expected[1]);
    }
    let expected = format!("a scale, one a row, or {expected:?} for blocks of {high} x {wide} in {rows} x {width}");
    Err(module.misfit(end, expected, format!("the shape {:?}", part.shape)))
}

/// Rows and columns of a block; 128 of both where nothing is said.
fn block_size(module: &QuantizedModule<'_>) -> Result<[usize; 2], ModelError> {
    let (key, stated) = match module.setting("weight_block_size") {
        Some(size) => ("weight_block_size", Some(size)),
        None => ("config_groups.weights.block_structure", module.group_setting("block_structure")?),
    };
    let Some(stated) = stated else { return Ok([128, 128]) };
    let size = |at: usize| stated.get(at).and_then(Value::as_u64).filter(|&n| n > 0).map(|n| n as usize);
    match (size(0), size(1), stated.as_array().map(Vec::len)) {
        (Some(rows), Some(columns), Some(2)) => Ok([rows, columns]),
        _ => Err(module.misconfigured(key, "two numbers above 0".into(), stated.to_string())),
    }
}
