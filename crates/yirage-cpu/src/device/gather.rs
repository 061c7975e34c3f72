//! Chosen rows of an activation.

use super::attend::Plans;
use super::operand::{Env, Operand};
use super::program::{BoundOp, Kernel};
use crate::isa::Isa;
use crate::pool::WorkerCtx;
use crate::rows;
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
    unsafe fn run(&self, env: &Env, _: &Plans, _: Isa, ctx: WorkerCtx<'_>) {
        let rows = self.out.rows().map_or(0, |d| d.get(env.dims));
        let count = self.x.rows().map_or(0, |d| d.get(env.dims));
        let share = rows * ctx.index / ctx.count..rows * (ctx.index + 1) / ctx.count;
        // SAFETY: workers take disjoint rows of the output.
        unsafe { rows::gather(share, self.x.width(), self.ids.ints(env), self.x.src(env), count, self.out.dst(env)) }
    }
}
