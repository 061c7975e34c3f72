//! An interpreter that runs launches exactly, and finds what a device would not tell.
//!
//! Floats are computed as IEEE 754 says, one rounding an operation. A [`KernelFault`] ends a launch: an element beside its
//! memory; a race, which is two threads that touch a word of which one writes, with no barrier of their group between them, or
//! of different groups in one launch; shared memory that is read and was not written; a barrier that not all threads come to;
//! and whatever the [vocabulary](crate::Computation) excludes, as divisions of whole numbers by 0.
//!
//! Threads run in an order of choice ([`ThreadSchedule`]): a kernel without fault computes the same in each, but for sums of
//! subgroups.

mod compute;
mod fault;
mod group;
mod half;
mod lanes;
mod memory;
mod schedule;

pub use fault::{KernelFault, KernelProblem};
pub use schedule::ThreadSchedule;

use crate::kernel::ComputeKernel;
use crate::verify::{VerifyKernelError, check_structure};
use group::GroupRun;
use memory::TrackedMemory;

/// How launches are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterpreterSettings {
    /// The order of threads and groups.
    pub schedule: ThreadSchedule,
    /// Threads of a subgroup, above 0.
    pub subgroup_size: u32,
    /// Instructions that all threads of a launch may run together.
    pub budget: u64,
}

impl Default for InterpreterSettings {
    fn default() -> InterpreterSettings {
        InterpreterSettings { schedule: ThreadSchedule::Ascending, subgroup_size: 32, budget: 1 << 36 }
    }
}

/// A kernel that can be run: its numbers, scopes and types are right. Whether all threads come to its barriers is found
/// while it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterpretedKernel(ComputeKernel);

impl InterpretedKernel {
    /// Takes a kernel.
    ///
    /// # Errors
    /// What [`verify()`](crate::verify()) refuses, but for uniform control flow.
    pub fn new(kernel: ComputeKernel) -> Result<InterpretedKernel, VerifyKernelError> {
        check_structure(&kernel)?;
        Ok(InterpretedKernel(kernel))
    }

    /// The kernel.
    pub fn kernel(&self) -> &ComputeKernel {
        &self.0
    }

    /// Runs a launch of so many groups along each axis. Buffers are words, in the order of the kernel's, and no two of them
    /// lie in the same memory.
    ///
    /// # Errors
    /// The first fault. Buffers then have what was written before.
    pub fn run(
        &self,
        grid: [u32; 3],
        buffers: &mut [&mut [u32]],
        settings: &InterpreterSettings,
    ) -> Result<(), KernelFault> {
        let kernel = &self.0;
        let refuse = |why| KernelFault::Launch { kernel: kernel.name.clone(), why };
        if buffers.len() != kernel.buffers.len() {
            return Err(refuse(format!("{} buffers are bound, and it has {}", buffers.len(), kernel.buffers.len())));
        }
        if settings.subgroup_size == 0 {
            return Err(refuse("a subgroup has 0 threads".into()));
        }
        let mut shared: Vec<Vec<u32>> = kernel.shared.iter().map(|array| vec![0; array.len as usize]).collect();
        let bound = kernel.buffers.iter().zip(buffers);
        let buffers = bound.map(|(buffer, words)| TrackedMemory::buffer(words, buffer.access));
        let memories = buffers.chain(shared.iter_mut().map(|words| TrackedMemory::shared(words))).collect();
        let mut run = GroupRun::new(kernel, memories, settings);
        // A grid of three axes of 32 bits has fewer groups than 2^96; no launch gets far in what 64 bits do not count.
        let groups = grid.iter().try_fold(1u64, |all, &axis| all.checked_mul(u64::from(axis)));
        let groups = groups.ok_or_else(|| refuse(format!("a grid of {grid:?} groups")))?;
        let [x, y] = [grid[0], grid[1]].map(|axis| u64::from(axis).max(1));
        for number in settings.schedule.order(groups, 0) {
            run.group([number % x, number / x % y, number / (x * y)].map(|at| at as u32))?;
        }
        Ok(())
    }
}
