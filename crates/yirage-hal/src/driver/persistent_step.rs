//! A step of a plan as one kernel that stays on the device: its launches, and which of them wait for which.

use super::command::ModuleId;
use super::kernel_call::KernelLaunch;
use super::memory::BufferSlice;
use yirage_ir::Dims;

/// A launch of a persistent step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersistentLaunch {
    /// The launch; its workspace, where it wants one, is its last binding.
    pub launch: KernelLaunch,
    /// The earlier launches of the step all of which has to have ended before any of this one begins, ascending. What follows from
    /// others is left out.
    pub after: Vec<u32>,
}

/// A step for a driver to run as one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PersistentStep {
    /// The code of its kernels.
    pub module: ModuleId,
    /// Where the sizes of a step lie ([`super::step_sizes`]).
    pub sizes: BufferSlice,
    /// The largest sizes.
    pub bucket: Dims,
    /// What runs, in an order in which it could run one after the other.
    pub launches: Vec<PersistentLaunch>,
}
