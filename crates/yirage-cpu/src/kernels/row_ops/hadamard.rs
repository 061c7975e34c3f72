//! `hadamard`.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRows, OutputRows, Site};
use std::ops::Range;
use yirage_cpu_kernels::rows;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct HadamardRowOp {
    part: usize,
    x: FloatRows,
    out: OutputRows<f32>,
}

impl BindRow for HadamardRowOp {
    type Op = op::Hadamard;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Hadamard>(vec![floats()])]
    }

    fn bind(op: &op::Hadamard, site: &Site) -> Result<HadamardRowOp, HalError> {
        Ok(HadamardRowOp { part: op.part as usize, x: site.float_rows(0)?, out: site.out(0)? })
    }
}

impl RowOp for HadamardRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe { rows::hadamard(run.isa, rows, self.x.width(), self.part, self.x.src(run), self.out.dst(run)) };
    }
}
