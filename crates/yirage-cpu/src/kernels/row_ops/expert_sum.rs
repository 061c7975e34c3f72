//! `expert_sum`: the experts of a token together.

use super::super::ways::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{FloatRows, Out, Run, Site};
use crate::rows;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct ExpertSum {
    ranks: usize,
    x: FloatRows,
    weights: FloatRows,
    out: Out<f32>,
}

impl BindRow for ExpertSum {
    type Op = op::ExpertSum;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::ExpertSum>(vec![floats()])]
    }

    fn bind(op: &op::ExpertSum, site: &Site) -> Result<ExpertSum, HalError> {
        let (ranks, weights) = (op.top_k as usize, site.float_rows(1)?);
        Ok(ExpertSum { ranks, x: site.float_rows(0)?, weights, out: site.out(0)? })
    }
}

impl RowOp for ExpertSum {
    unsafe fn run(&self, run: &Run<'_>, rows: Range<usize>) {
        let (x, weights, out) = (self.x.src(run), self.weights.src(run), self.out.dst(run));
        // SAFETY: the caller's contract; `Site` bound operands that lie whole in their memory.
        unsafe { rows::expert_sum(run.isa, rows, self.ranks, self.out.width(), x, weights, out) };
    }
}
