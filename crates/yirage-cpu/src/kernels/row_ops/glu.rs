//! `glu`.

use super::super::ways::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{FloatRows, Out, Run, Site};
use crate::rows;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct Glu {
    kind: op::GluKind,
    gate: FloatRows,
    up: FloatRows,
    out: Out<f32>,
}

impl BindRow for Glu {
    type Op = op::Glu;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Glu>(vec![floats()])]
    }

    fn bind(op: &op::Glu, site: &Site) -> Result<Glu, HalError> {
        Ok(Glu { kind: op.kind, gate: site.float_rows(0)?, up: site.float_rows(1)?, out: site.out(0)? })
    }
}

impl RowOp for Glu {
    unsafe fn run(&self, run: &Run<'_>, rows: Range<usize>) {
        let (gate, up, out) = (self.gate.src(run), self.up.src(run), self.out.dst(run));
        // SAFETY: the caller's contract; `Site` bound operands that lie whole in their memory.
        unsafe { rows::glu(run.isa, rows, self.gate.width(), self.kind, gate, up, out) };
    }
}
