//! `quantize`: int8 blocks, in the tile order of products, or for experts token by token, each part of a row by itself.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRows, QuantizedReaders, QuantizedRows, Site};
use std::ops::Range;
use yirage_cpu_kernels::activation::{ActivationBufferLayout, ActivationEncoding};
use yirage_cpu_kernels::linear::Dispatch;
use yirage_hal::HalError;
use yirage_ir::{ActivationFormat, op};
use yirage_plan::rules::OpRule;

pub(super) struct QuantizeRowOp {
    x: FloatRows,
    out: QuantizedRows,
    parts: Option<usize>,
    pairs: Option<Dispatch>,
}

impl BindRow for QuantizeRowOp {
    type Op = op::Quantize;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Quantize>(vec![floats()]).when("layout", ActivationFormat::Q8A)]
    }

    fn bind(op: &op::Quantize, site: &Site) -> Result<QuantizeRowOp, HalError> {
        let QuantizedReaders { parts, pairs } = *site.readers();
        let read = parts.unwrap_or(1);
        if op.parts as usize != read {
            return Err(HalError::Load(format!("a quantised row of {} parts is read in {read}", op.parts)));
        }
        Ok(QuantizeRowOp { x: site.float_rows(0)?, out: site.out_quantized(0)?, parts, pairs })
    }
}

impl RowOp for QuantizeRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        self.x.fetch(run, &rows);
        let (from, to, k) = (self.x.first(run), self.out.first(run), self.x.width());
        // SAFETY: what `RowOp::run` is promised; `yirage_plan::VerifiedPlan` gives the output the bytes that the target's storage size
        // says, which are those of the layout.
        unsafe {
            match self.parts {
                Some(parts) => {
                    let layout = ActivationBufferLayout::new(ActivationEncoding::Q8, 1, k / parts);
                    for p in rows.start * parts..rows.end * parts {
                        let (from, to) = (from.wrapping_add(p * layout.k()), to.add(p * layout.bytes()));
                        layout.store(run.isa, from, layout.k(), 0..1, to);
                    }
                }
                None => {
                    let tokens = run.size(self.x.rows());
                    let pairs = self.pairs.is_some_and(|kernel| kernel.reads_pairs(tokens));
                    let layout = ActivationBufferLayout::new(ActivationEncoding::Q8, tokens, k).with_pairs(pairs);
                    layout.store(run.isa, from, k, rows, to);
                }
            }
        }
    }
}
