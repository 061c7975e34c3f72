//! `matmul`.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRows, OutputRows, Site};
use std::ops::Range;
use yirage_cpu_kernels::rows;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct MatMulRowOp {
    sizes: rows::MatMulSizes,
    a: FloatRows,
    b: FloatRows,
    out: OutputRows<f32>,
}

impl BindRow for MatMulRowOp {
    type Op = op::MatMul;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::MatMul>(vec![floats()])]
    }

    fn bind(op: &op::MatMul, site: &Site) -> Result<MatMulRowOp, HalError> {
        let (a, m, n) = (site.float_rows(0)?, op.m as usize, op.n as usize);
        let sizes = rows::MatMulSizes { m, k: a.width() / m.max(1), n };
        Ok(MatMulRowOp { sizes, a, b: site.float_rows(1)?, out: site.out(0)? })
    }
}

impl RowOp for MatMulRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe { rows::matmul(run.isa, rows, self.sizes, self.a.src(run), self.b.src(run), self.out.dst(run)) };
    }
}
