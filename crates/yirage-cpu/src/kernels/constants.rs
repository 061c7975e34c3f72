//! What is computed of nothing: one value everywhere, and numbers that count.

use super::chain::{sizes, strides};
use super::{BoundKernel, Kernel};
use crate::bind::{Binder, CpuRunContext, ViewedOut, Whole};
use crate::walk::StageWork;
use yirage_cpu_kernels::general;
use yirage_hal::HalError;
use yirage_ir::expr::Scalar;
use yirage_ir::{Dim, Op};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Stage};

impl Kernel {
    pub(super) const CONSTANTS: Kernel = Kernel {
        name: "cpu/constants@1",
        regions: &[],
        rules: || ["fill", "iota"].map(|op| OpRule::new(op, Vec::new())).into(),
        stages: &[Stage::always(Partitioning::Static)],
        scratch: false,
        bind,
    };
}

struct Constants {
    what: ConstantKind,
    shape: Vec<Dim>,
    out: ViewedOut,
}

enum ConstantKind {
    Everywhere(Scalar),
    Along(usize),
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    bound(&binder.whole(n)?)
}

/// A node that is computed of nothing.
pub(super) fn bound(node: &Whole) -> Result<Box<dyn BoundKernel>, HalError> {
    let what = match node.op()? {
        Op::Fill(op) => ConstantKind::Everywhere(op.value),
        Op::Iota(op) => ConstantKind::Along(op.axis as usize),
        other => return Err(HalError::Load(format!("`{}` is no constant", other.name()))),
    };
    let (out, shape) = node.all_written()?;
    Ok(Box::new(Constants { what, shape, out }))
}

impl BoundKernel for Constants {
    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let sizes = sizes(&self.shape, run.dims);
        let (out, share) = (self.out.output(run, strides(self.out.strides())), work.partition(sizes.count()));
        // SAFETY: `Whole::all_written` has checked that all elements exist; workers take disjoint ones.
        unsafe {
            match self.what {
                ConstantKind::Everywhere(value) => {
                    if let Err(why) = general::fill(&sizes, value, out, share) {
                        run.fail(why);
                    }
                }
                ConstantKind::Along(axis) => general::iota(&sizes, axis, out, share),
            }
        }
    }
}
