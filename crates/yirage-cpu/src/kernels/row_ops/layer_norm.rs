//! `layer_norm`.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRow, FloatRows, OutputRows, Site};
use std::ops::Range;
use yirage_cpu_kernels::rows;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct LayerNormRowOp {
    eps: f32,
    weight: FloatRow,
    bias: Option<FloatRow>,
    x: FloatRows,
    out: OutputRows<f32>,
}

impl BindRow for LayerNormRowOp {
    type Op = op::LayerNorm;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::LayerNorm>(vec![floats()])]
    }

    fn bind(op: &op::LayerNorm, site: &Site) -> Result<LayerNormRowOp, HalError> {
        let bias = if site.inputs() > 2 { Some(site.float_row(2)?) } else { None };
        let (eps, weight) = (op.eps.0, site.float_row(1)?);
        Ok(LayerNormRowOp { eps, weight, bias, x: site.float_rows(0)?, out: site.out(0)? })
    }
}

impl RowOp for LayerNormRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe {
            let bias = self.bias.as_ref().map(|b| b.all(run));
            let norm = rows::LayerNormParams { eps: self.eps, weight: self.weight.all(run), bias };
            rows::layer_norm(run.isa, rows, norm, self.x.src(run), self.out.dst(run));
        }
    }
}
