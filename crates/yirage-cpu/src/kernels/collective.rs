//! What the ranks of a group do together with a value of each.
//!
//! One worker meets the other ranks while the rest wait for it. It is always the same one, so a rank comes to the collectives
//! of a step in the order of the plan, whatever executor runs it. Unknown here: how ranks reach each other.

use super::{BoundKernel, Kernel};
use crate::bind::{Binder, CpuRunContext, Viewed, ViewedOut};
use crate::peers::CpuPeers;
use crate::walk::StageWork;
use std::sync::Arc;
use yirage_hal::HalError;
use yirage_ir::{DType, Dim, Dims, Op};
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};
use yirage_plan::{Partitioning, Stage};

impl Kernel {
    /// It is a kernel of devices that are ranks of a group, whose rules are those of the group ([`collective_rules`]).
    pub(crate) const COLLECTIVE: Kernel = Kernel {
        name: "cpu/collective@1",
        regions: &[],
        rules: Vec::new,
        stages: &[Stage::always(Partitioning::Static)],
        scratch: false,
        bind,
    };
}

/// The ops of a group of so many ranks.
pub(crate) fn collective_rules(ranks: u32) -> Vec<OpRule> {
    let matrix = || vec![vec![OperandConstraint::new(OperandKind::Arena, [DType::F32])]];
    Op::COLLECTIVES.iter().map(|op| OpRule::new(op, matrix()).when("ranks", ranks)).collect()
}

struct Collective {
    op: Op,
    peers: Arc<dyn CpuPeers>,
    x: Viewed,
    rows: Dim,
    /// Elements of a row that this rank gives, and of one that it gets.
    widths: [usize; 2],
    out: ViewedOut,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let node = binder.whole(n)?;
    let op = node.op()?.clone();
    let alone = || HalError::Load(format!("`{}` on a device that is a rank of no group", op.name()));
    let peers = binder.shared.peers.clone().ok_or_else(alone)?;
    let ((x, from), (out, to)) = (node.all(0)?, node.all_written()?);
    let width = |shape: &[Dim], strides: &[i64]| match (shape, strides) {
        ([_, Dim::Const(width)], [stride, 1]) if *stride == *width as i64 => Some(*width as usize),
        _ => None,
    };
    let widths = [width(&from, x.strides()), width(&to, out.strides())];
    let [Some(give), Some(get)] = widths else {
        return Err(HalError::Load(format!("`{}` of {from:?} to {to:?}: matrices without gaps wanted", op.name())));
    };
    Ok(Box::new(Collective { op, peers, x, rows: from[0], widths: [give, get], out }))
}

impl BoundKernel for Collective {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        // The one share of one thing is the last worker's.
        if work.partition(1).is_empty() {
            return;
        }
        let (rows, [give, get]) = (run.size(self.rows), self.widths);
        // SAFETY: `Whole::all` has checked that all elements exist, without gaps (`bind`); what wrote them has ended.
        let bytes = unsafe { std::slice::from_raw_parts(self.x.first(run), rows * give * size_of::<f32>()) };
        match self.peers.meet(&self.op, DType::F32, [rows, give], bytes) {
            Ok(got) if got.len() == rows * get * size_of::<f32>() => {
                // SAFETY: `Whole::all` has checked that all elements of the output exist, without gaps (`bind`); its bytes are as
                // many as those that came, which has just been compared, and by `BoundKernel::run` nobody else uses them.
                unsafe { std::ptr::copy_nonoverlapping(got.as_ptr(), self.out.first(run), got.len()) };
            }
            Ok(got) => run.fail(format!("`{}` of {rows} rows of {get} gave {} bytes", self.op.name(), got.len())),
            Err(error) => run.fail(error),
        }
    }

    fn workers(&self, _: &Dims) -> usize {
        1
    }
}
