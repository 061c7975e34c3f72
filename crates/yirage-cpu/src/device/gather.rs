//! Chosen rows of an activation.

use super::operand::Operand;
use super::program::{BoundOp, Kernel, Run};
use crate::rows;
use crate::walk::Work;
use yirage_hal::HalError;

/// A gather.
pub(super) struct GatherRows {
    x: Operand,
    ids: Operand,
    out: Operand,
}

impl GatherRows {
    pub(super) fn new(mut ops: Vec<BoundOp>) -> Result<GatherRows, HalError> {
        let op = ops.pop().ok_or_else(|| HalError::Load("no op to gather with".into()))?;
        let ([x, ids], [out]) = (&op.ins[..], &op.outs[..]) else {
            return Err(HalError::Load("gather wants two inputs and one output".into()));
        };
        x.want_floats("what gather reads")?;
        Ok(GatherRows { x: x.clone(), ids: ids.clone(), out: out.clone() })
    }
}

impl Kernel for GatherRows {
    unsafe fn run(&self, _: u32, run: &Run<'_>, work: Work<'_>) {
        let env = &run.env;
        let rows = self.out.rows().map_or(0, |d| d.get(env.dims));
        let count = self.x.rows().map_or(0, |d| d.get(env.dims));
        // SAFETY: workers take disjoint rows of the output.
        unsafe {
            rows::gather(
                work.share(rows),
                self.x.width(),
                self.ids.ints(env),
                self.x.src(env),
                count,
                self.out.dst(env),
            )
        }
    }
}
