//! `top_k`.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRows, OutputRows, Site};
use std::ops::Range;
use yirage_cpu_kernels::rows;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct TopKRowOp {
    op: op::TopK,
    x: FloatRows,
    values: OutputRows<f32>,
    indices: OutputRows<i32>,
}

impl BindRow for TopKRowOp {
    type Op = op::TopK;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::TopK>(vec![floats()])]
    }

    fn bind(op: &op::TopK, site: &Site) -> Result<TopKRowOp, HalError> {
        Ok(TopKRowOp { op: op.clone(), x: site.float_rows(0)?, values: site.out(0)?, indices: site.out(1)? })
    }
}

impl RowOp for TopKRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        let (k, largest, sorted) = (self.op.k as usize, self.op.largest, self.op.sorted);
        let top = rows::TopKParams { width: self.x.width(), k, largest, sorted };
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe {
            let (values, indices) = (self.values.some(run, rows.clone()), self.indices.some(run, rows.clone()));
            rows::top_k(run.isa, rows, top, self.x.src(run), values, indices);
        }
    }
}
