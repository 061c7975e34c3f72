//! `expert_bias`: each rank of a token meets the bias of its expert.

use super::super::operand_constraints::{floats, integers};
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRows, OutputRows, Site, WordArray};
use std::ops::Range;
use yirage_cpu_kernels::rows;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct ExpertBiasRowOp {
    ranks: usize,
    x: FloatRows,
    bias: FloatRows,
    chosen: WordArray<i32>,
    out: OutputRows<f32>,
}

impl BindRow for ExpertBiasRowOp {
    type Op = op::ExpertBias;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::ExpertBias>(vec![floats(), floats(), integers()])]
    }

    fn bind(op: &op::ExpertBias, site: &Site) -> Result<ExpertBiasRowOp, HalError> {
        let (ranks, bias) = (op.top_k as usize, site.whole_rows(1)?);
        Ok(ExpertBiasRowOp { ranks, x: site.float_rows(0)?, bias, chosen: site.array(2)?, out: site.out(0)? })
    }
}

impl RowOp for ExpertBiasRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        let width = self.bias.width();
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe {
            let (bias, chosen) = (self.bias.all(run), self.chosen.some(run, rows.clone()));
            rows::expert_bias(rows, self.ranks, width, self.x.src(run), bias, chosen, self.out.dst(run));
        }
    }
}
