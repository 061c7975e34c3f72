//! Values one after the other.

use super::chain::{sizes, strides};
use super::operand_constraints::moved;
use super::{BoundKernel, Kernel};
use crate::bind::{Binder, CpuRunContext, Viewed, ViewedOut, Whole};
use crate::walk::StageWork;
use yirage_cpu_kernels::general;
use yirage_hal::HalError;
use yirage_ir::{Dim, Op};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Stage};

impl Kernel {
    pub(super) const CONCAT: Kernel = Kernel {
        name: "cpu/concat@1",
        regions: &[],
        rules: || vec![OpRule::new("concat", vec![moved()])],
        stages: &[Stage::always(Partitioning::Static)],
        scratch: false,
        bind,
    };
}

struct Concat {
    axis: usize,
    /// Each with its size along the axis.
    parts: Vec<(Viewed, usize)>,
    shape: Vec<Dim>,
    out: ViewedOut,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    bound(&binder.whole(n)?)
}

/// A node that joins values.
pub(super) fn bound(node: &Whole) -> Result<Box<dyn BoundKernel>, HalError> {
    let Op::Concat(op) = node.op()? else {
        return Err(HalError::Load(format!("{} joins values and does nothing else", Kernel::CONCAT.name)));
    };
    let axis = op.axis as usize;
    let part = |input| {
        let (viewed, shape) = node.all(input)?;
        let size = shape.get(axis).and_then(|dim| dim.as_const());
        let size = size.ok_or_else(|| HalError::Load(format!("a part without a fixed size along dimension {axis}")))?;
        Ok((viewed, size))
    };
    let parts = (0..node.inputs()).map(part).collect::<Result<_, HalError>>()?;
    let (out, shape) = node.all_written()?;
    Ok(Box::new(Concat { axis, parts, shape, out }))
}

impl BoundKernel for Concat {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let sizes = sizes(&self.shape, run.dims);
        let parts: Vec<_> = self.parts.iter().map(|(x, n)| (x.input(run, strides(x.strides())), *n)).collect();
        let (out, share) = (self.out.output(run, strides(self.out.strides())), work.partition(sizes.count()));
        // SAFETY: `Whole::all` has checked that all elements exist; workers take disjoint ones.
        unsafe { general::concat(&sizes, self.axis, &parts, out, share) };
    }
}
