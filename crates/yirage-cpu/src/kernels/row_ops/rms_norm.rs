//! `rms_norm`.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRow, FloatRows, OutputRows, Site};
use std::ops::Range;
use yirage_cpu_kernels::rows;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct RmsNormRowOp {
    op: op::RmsNorm,
    weight: Option<FloatRow>,
    x: FloatRows,
    out: OutputRows<f32>,
}

impl BindRow for RmsNormRowOp {
    type Op = op::RmsNorm;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::RmsNorm>(vec![floats()])]
    }

    fn bind(op: &op::RmsNorm, site: &Site) -> Result<RmsNormRowOp, HalError> {
        let weight = if site.inputs() > 1 { Some(site.float_row(1)?) } else { None };
        Ok(RmsNormRowOp { op: op.clone(), weight, x: site.float_rows(0)?, out: site.out(0)? })
    }
}

impl RowOp for RmsNormRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        self.x.fetch(run, &rows);
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe {
            let norm = rows::RmsNormParams {
                row: self.x.width(),
                width: self.op.width as usize,
                eps: self.op.eps.0,
                weight: self.weight.as_ref().map(|w| w.all(run)),
                unit_offset: self.op.unit_offset,
            };
            rows::rms_norm(run.isa, rows, norm, self.x.src(run), self.out.dst(run));
        }
    }
}
