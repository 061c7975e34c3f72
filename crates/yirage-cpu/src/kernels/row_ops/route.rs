//! `route`: the choice of experts.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRow, FloatRows, OutputRows, Site};
use std::ops::Range;
use yirage_cpu_kernels::rows;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct RouteRowOp {
    op: op::Route,
    logits: FloatRows,
    bias: Option<FloatRow>,
    weights: OutputRows<f32>,
    chosen: OutputRows<i32>,
}

impl BindRow for RouteRowOp {
    type Op = op::Route;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Route>(vec![floats()])]
    }

    fn bind(op: &op::Route, site: &Site) -> Result<RouteRowOp, HalError> {
        let bias = if site.inputs() > 1 { Some(site.float_row(1)?) } else { None };
        let logits = site.float_rows(0)?;
        if logits.width() > rows::MAX_EXPERTS {
            let (experts, most) = (logits.width(), rows::MAX_EXPERTS);
            return Err(HalError::Load(format!("`route` over {experts} experts; this device chooses among {most}")));
        }
        Ok(RouteRowOp { op: op.clone(), logits, bias, weights: site.out(0)?, chosen: site.out(1)? })
    }
}

impl RowOp for RouteRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe {
            let route = rows::RouteParams {
                experts: self.logits.width(),
                top_k: self.op.top_k as usize,
                scoring: self.op.scoring,
                normalize: self.op.normalize,
                scale: self.op.scale.0,
                bias: self.bias.as_ref().map(|b| b.all(run)),
                groups: self.op.groups as usize,
                top_groups: self.op.top_groups as usize,
            };
            let (weights, chosen) = (self.weights.some(run, rows.clone()), self.chosen.some(run, rows.clone()));
            rows::route(run.isa, rows, route, self.logits.src(run), weights, chosen);
        }
    }
}
