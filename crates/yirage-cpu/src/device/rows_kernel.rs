//! Row-wise ops in one pass over the tokens.

use super::program::{BoundOp, Kernel, Run};
use super::row_op::RowOp;
use crate::walk::Work;
use yirage_hal::HalError;
use yirage_ir::Dim;

/// Tokens that pass through all ops together: their rows stay in the second-level cache.
const GROUP: usize = 16;

/// The ops, in order.
pub(super) struct RowsKernel {
    ops: Vec<RowOp>,
    rows: Dim,
}

impl RowsKernel {
    pub(super) fn new(ops: Vec<BoundOp>) -> Result<RowsKernel, HalError> {
        let rows = ops.iter().flat_map(|op| op.outs.iter().chain(&op.ins)).find_map(|o| o.rows());
        let rows = rows.ok_or_else(|| HalError::Load("a row-wise region has no rows".into()))?;
        Ok(RowsKernel { ops: ops.into_iter().map(RowOp::bind).collect::<Result<_, _>>()?, rows })
    }
}

impl Kernel for RowsKernel {
    unsafe fn run(&self, _: u32, run: &Run<'_>, work: Work<'_>) {
        let share = work.share(self.rows.get(run.env.dims));
        for first in share.clone().step_by(GROUP) {
            for op in &self.ops {
                // SAFETY: workers take disjoint rows, and row-wise ops touch their rows alone.
                unsafe { op.run(&run.env, run.isa, first..share.end.min(first + GROUP)) };
            }
        }
    }
}
