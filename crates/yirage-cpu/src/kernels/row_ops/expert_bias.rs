//! `expert_bias`: each rank of a token meets the bias of its expert.

use super::super::ways::{floats, integers};
use super::{BindRow, RowOp, rule};
use crate::bind::{Array, FloatRows, Out, Run, Site};
use crate::rows;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct ExpertBias {
    ranks: usize,
    x: FloatRows,
    bias: FloatRows,
    chosen: Array<i32>,
    out: Out<f32>,
}

impl BindRow for ExpertBias {
    type Op = op::ExpertBias;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::ExpertBias>(vec![floats(), floats(), integers()])]
    }

    fn bind(op: &op::ExpertBias, site: &Site) -> Result<ExpertBias, HalError> {
        let (ranks, bias) = (op.top_k as usize, site.whole_rows(1)?);
        Ok(ExpertBias { ranks, x: site.float_rows(0)?, bias, chosen: site.array(2)?, out: site.out(0)? })
    }
}

impl RowOp for ExpertBias {
    unsafe fn run(&self, run: &Run<'_>, rows: Range<usize>) {
        let width = self.bias.width();
        // SAFETY: the caller's contract; `Site` bound operands that lie whole in their memory.
        unsafe {
            let (bias, chosen) = (self.bias.all(run), self.chosen.some(run, rows.clone()));
            rows::expert_bias(rows, self.ranks, width, self.x.src(run), bias, chosen, self.out.dst(run));
        }
    }
}
