//! `expert_sum`: the experts of a token together.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRows, OutputRows, Site};
use std::ops::Range;
use yirage_cpu_kernels::rows;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct ExpertSumRowOp {
    ranks: usize,
    x: FloatRows,
    weights: FloatRows,
    out: OutputRows<f32>,
}

impl BindRow for ExpertSumRowOp {
    type Op = op::ExpertSum;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::ExpertSum>(vec![floats()])]
    }

    fn bind(op: &op::ExpertSum, site: &Site) -> Result<ExpertSumRowOp, HalError> {
        let (ranks, weights) = (op.top_k as usize, site.float_rows(1)?);
        Ok(ExpertSumRowOp { ranks, x: site.float_rows(0)?, weights, out: site.out(0)? })
    }
}

impl RowOp for ExpertSumRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        let (x, weights, out) = (self.x.src(run), self.weights.src(run), self.out.dst(run));
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe { rows::expert_sum(run.isa, rows, self.ranks, self.out.width(), x, weights, out) };
    }
}
