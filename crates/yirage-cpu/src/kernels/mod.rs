//! The kernels of this backend: one table, from which the target, the choice of kernels and loading read.
//!
//! A kernel is a file here and a line of [`Kernel::ALL`]. It binds ops to their operands and shares their work among the
//! workers; what computes lies beside this room and knows no plan.

mod attention;
mod chain;
mod collective;
mod concat;
mod constants;
mod contract;
mod epilogue;
mod experts;
mod gather;
mod matmul_group;
mod operand_constraints;
mod recurrent;
mod row_ops;
mod sample;
mod tiled;

pub(crate) use collective::collective_rules;

use crate::bind::{Binder, CpuRunContext, Site};
use crate::walk::StageWork;
use yirage_hal::HalError;
use yirage_ir::{Dims, RegionKind};
use yirage_plan::Stage;
use yirage_plan::rules::OpRule;

/// What a target says of a kernel, and how it is bound.
pub(crate) struct Kernel {
    /// `backend/kernel@version`.
    pub(crate) name: &'static str,
    /// Kinds of regions it runs, beside single ops.
    pub(crate) regions: &'static [RegionKind],
    /// The ops it runs, and what each may read.
    pub(crate) rules: fn() -> Vec<OpRule>,
    /// Its stages, in order.
    pub(crate) stages: &'static [Stage],
    /// Whether it uses scratch memory.
    pub(crate) scratch: bool,
    /// Binds the ops of a node.
    bind: Bind,
}

impl Kernel {
    /// All of them but what ranks do together, most wanted first. A constant of the type, and so are they: a static, or a constant of a module, would be
    /// compiled with all kernels in the program of the crate's own tests, which run few of them.
    pub(crate) const ALL: &'static [Kernel] = &[
        Kernel::CHAIN,
        Kernel::CONTRACT,
        Kernel::CONCAT,
        Kernel::CONSTANTS,
        Kernel::ROW_OPS,
        Kernel::MATMUL_GROUP,
        Kernel::EXPERTS,
        Kernel::ATTENTION,
        Kernel::RECURRENT,
        Kernel::GATHER,
        Kernel::SAMPLE,
        // Last: the ops that it takes in tiles are, alone, those of others.
        Kernel::TILED,
    ];
}

/// Binds node `n` of the plan.
type Bind = fn(&mut Binder<'_>, usize) -> Result<Box<dyn BoundKernel>, HalError>;

/// A kernel bound to its operands.
pub(crate) trait BoundKernel: Send + Sync {
    /// Runs one task's part of a stage, one of those that the kernel's line lists.
    ///
    /// # Safety
    /// Everything before it in the task program has ended: earlier stages, and what writes what this one reads or reads
    /// what it writes. `yirage_plan::VerifiedPlan` proves that of programs.
    unsafe fn run(&self, stage: u32, run: &CpuRunContext<'_>, work: StageWork<'_>);

    /// A worker has nothing to do until this task, for the `look`th time. What it warms must not depend on what has not
    /// ended.
    fn waiting(&self, stage: u32, run: &CpuRunContext<'_>, work: StageWork<'_>, look: u32) {
        let _ = (stage, run, work, look);
    }

    /// Workers among which a step of these sizes can be shared.
    fn workers(&self, dims: &Dims) -> usize {
        let _ = dims;
        usize::MAX
    }
}

/// Binds node `n` of a plan to the kernel of this name.
///
/// # Errors
/// No such kernel; and operands that it does not take.
pub(crate) fn bind(binder: &mut Binder<'_>, n: usize, name: &str) -> Result<Box<dyn BoundKernel>, HalError> {
    let kernel = Kernel::ALL.iter().chain([&Kernel::COLLECTIVE]).find(|kernel| kernel.name == name);
    let kernel = kernel.ok_or_else(|| HalError::Load(format!("this device has no kernel {name}")))?;
    (kernel.bind)(binder, n)
}

/// The one op of a node.
fn single<const N: usize>(sites: Vec<Site>, kernel: &str) -> Result<[Site; N], HalError> {
    let found = sites.len();
    sites.try_into().map_err(|_| HalError::Load(format!("{kernel} runs {N} op at a time, not {found}")))
}

fn not_for(kernel: &str, site: &Site) -> HalError {
    HalError::Load(format!("`{}` is no op of the kernel {kernel}", site.op().name()))
}
