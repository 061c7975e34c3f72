//! Chosen rows of an activation.

use super::ways::{floats, integers};
use super::{BoundKernel, Kernel, not_for, single};
use crate::bind::{Array, Binder, FloatRows, Out, Run};
use crate::rows;
use crate::walk::Work;
use yirage_hal::HalError;
use yirage_ir::Op;
use yirage_plan::rules::OpRule;
use yirage_plan::{Sharing, Stage};

pub(super) const KERNEL: Kernel = Kernel {
    name: "cpu/gather@1",
    regions: &[],
    rules: || vec![OpRule::new("gather", vec![floats(), integers()]).when("axis", 0)],
    stages: &[Stage::always(Sharing::Shares)],
    scratch: false,
    bind,
};

/// A gather.
struct Gather {
    x: FloatRows,
    ids: Array<i32>,
    out: Out<f32>,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let sites = binder.sites(n)?;
    let [site] = single(sites, KERNEL.name)?;
    let Op::Gather(op) = site.op() else { return Err(not_for(KERNEL.name, &site)) };
    if op.axis != 0 || site.rank(1) != 1 {
        let (axis, rank) = (op.axis, site.rank(1));
        return Err(HalError::Load(format!(
            "`gather` takes rows by a list, not along dimension {axis} by rank {rank}"
        )));
    }
    Ok(Box::new(Gather { x: site.whole_rows(0)?, ids: site.array(1)?, out: site.out(0)? }))
}

impl BoundKernel for Gather {
    unsafe fn run(&self, _: u32, run: &Run<'_>, work: Work<'_>) {
        let (rows, count) = (run.size(self.out.rows()), run.size(self.x.rows()));
        // SAFETY: `Site` bound operands that lie whole in their memory; workers take disjoint rows of the output.
        unsafe {
            let (share, width) = (work.share(rows), self.x.width());
            let ids = self.ids.some(run, share.clone());
            rows::gather(share, width, ids, self.x.src(run), count, self.out.dst(run));
        }
    }
}
