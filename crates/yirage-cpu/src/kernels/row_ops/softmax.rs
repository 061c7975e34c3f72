//! `softmax`.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRows, OutputRows, Site};
use std::ops::Range;
use yirage_cpu_kernels::rows;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct SoftmaxRowOp {
    x: FloatRows,
    out: OutputRows<f32>,
}

impl BindRow for SoftmaxRowOp {
    type Op = op::Softmax;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Softmax>(vec![floats()])]
    }

    fn bind(_: &op::Softmax, site: &Site) -> Result<SoftmaxRowOp, HalError> {
        Ok(SoftmaxRowOp { x: site.float_rows(0)?, out: site.out(0)? })
    }
}

impl RowOp for SoftmaxRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe { rows::softmax(run.isa, rows, self.x.width(), self.x.src(run), self.out.dst(run)) };
    }
}
