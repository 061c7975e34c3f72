//! AWQ as its `gemm` kernels read it: words of codes along the rows of outputs, in an order of their own; weight = scale *
//! (code - zero).

use super::float_type::{PartType, SCALES};
use super::integer::{IntegerDecoder, IntegerWeight};
use super::words::{code, word};
use super::{QuantizedModule, QuantizedWeight};
use crate::error::ModelError;
use std::ops::Range;

pub(super) const PARTS: &[&str] = &[".qweight", ".qzeros", ".scales"];

/// Where in a word the code of each of eight outputs is.
const PLACE: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

#[derive(Debug)]
struct Awq {
    rows: usize,
    width: usize,
    group: usize,
    scales: PartType,
}

impl IntegerWeight for Awq {
    fn width(&self) -> usize {
        self.width
    }

    fn group(&self) -> Option<usize> {
        Some(self.group)
    }

    fn scales(&self) -> (usize, PartType) {
        (2, self.scales)
    }

    fn scale_at(&self, _: &[&[u8]], row: usize, column: usize) -> usize {
        column / self.group * self.rows + row
    }

    fn range(&self, parts: &[&[u8]]) -> (i16, i16) {
        let words = (0..parts[1].len() / 4).map(|at| word(parts[1], at));
        let zeros = words.flat_map(|word| (0..8).map(move |at| code(word, 4, at)));
        let (least, most) = zeros.fold((15, 0), |(least, most), zero| (zero.min(least), zero.max(most)));
        (-most, 15 - least)
    }

    fn numbers(&self, parts: &[&[u8]], row: usize, columns: Range<usize>, out: &mut [i16]) {
        let (words, place) = (self.rows / 8, PLACE[row % 8]);
        let at = |line: usize| line * words + row / 8;
        let mut zero = 0;
        for (column, number) in columns.clone().zip(out) {
            if column % self.group == 0 || column == columns.start {
                zero = code(word(parts[1], at(column / self.group)), 4, place);
            }
            *number = code(word(parts[0], at(column)), 4, place) - zero;
        }
    }
}

pub(super) fn read(module: &QuantizedModule<'_>) -> Result<QuantizedWeight, ModelError> {
    match module.whole("bits", module.setting("w_bit").and_then(serde_json::Value::as_i64))? {
        4 => {}
        bits => return Err(module.unsupported(&format!("AWQ with {bits} bits"), "4 bits are read")),
    }
    match module.setting("version").map(|v| v.as_str().unwrap_or("no string").to_ascii_lowercase()).as_deref() {
        None | Some("gemm") => {}
        Some(other) => return Err(module.unsupported(&format!("AWQ in the layout {other:?}"), "gemm is read")),
    }
    let codes = module.typed(".qweight", &[PartType::I32])?;
    let [width, words] = module.matrix(".qweight", codes)?;
    let rows = words.saturating_mul(8);
    let group = match module.whole("group_size", module.setting("q_group_size").and_then(serde_json::Value::as_i64))? {
        -1 => width,
        n @ 1.. => n as usize,
        n => return Err(module.misconfigured("group_size", "-1 or a number above 0".into(), n.to_string())),
    };
    let groups = width.div_ceil(group);
    let scales = module.shaped(".scales", SCALES, &[groups, rows])?;
    module.shaped(".qzeros", &[PartType::I32], &[groups, words])?;
    let awq = Awq { rows, width, group, scales: scales.ty };
    let name = format!("AWQ 4-bit, groups of {group}");
    Ok(QuantizedWeight {
        name,
        shape: vec![rows, width],
        parts: PARTS.to_vec(),
        decoder: Box::new(IntegerDecoder(awq)),
    })
}
