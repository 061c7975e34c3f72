//! Chosen slices of a value.

use super::chain::{sizes, strides};
use super::operand_constraints::{integers, moved};
use super::{BoundKernel, Kernel};
use crate::bind::{Binder, CpuRunContext, Viewed, ViewedOut};
use crate::walk::StageWork;
use yirage_cpu_kernels::general::{self, Slices};
use yirage_hal::HalError;
use yirage_ir::{Dim, Op};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Stage};

impl Kernel {
    pub(super) const GATHER: Kernel = Kernel {
        name: "cpu/gather@2",
        regions: &[],
        rules: || vec![OpRule::new("gather", vec![moved(), integers()])],
        stages: &[Stage::always(Partitioning::Static)],
        scratch: false,
        bind,
    };
}

struct GatherKernel {
    axis: usize,
    /// The value's size along the axis.
    extent: Dim,
    x: Viewed,
    at: Viewed,
    shape: Vec<Dim>,
    out: ViewedOut,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let node = binder.whole(n)?;
    let Op::Gather(op) = node.op()? else {
        return Err(HalError::Load(format!("{} chooses slices and does nothing else", Kernel::GATHER.name)));
    };
    let axis = op.axis as usize;
    let ((x, from), (at, _), (out, shape)) = (node.all(0)?, node.all(1)?, node.all_written()?);
    let extent = from.get(axis).copied();
    let extent = extent.ok_or_else(|| HalError::Load(format!("what is chosen from has no dimension {axis}")))?;
    Ok(Box::new(GatherKernel { axis, extent, x, at, shape, out }))
}

impl BoundKernel for GatherKernel {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let sizes = sizes(&self.shape, run.dims);
        let (x, at) = (self.x.input(run, strides(self.x.strides())), self.at.input(run, strides(self.at.strides())));
        let slices = Slices { x, axis: self.axis, extent: run.size(self.extent), at };
        let (out, share) = (self.out.output(run, strides(self.out.strides())), work.partition(sizes.count()));
        // SAFETY: `Whole::all` has checked that all elements exist; workers take disjoint ones.
        unsafe { general::gather(&sizes, &slices, out, share) };
    }
}
