//! A step of a program as its driver has made it ready as one kernel, and how that follows from the program's plan.
//!
//! The plan's task program says what runs, and the bytes that its steps touch say what has to have ended before: the same spans
//! from which programs of several workers are cut and proved (`yirage_plan::tasks`). Unknown here: how groups wait.

use super::buffer::DriverAccount;
use super::contract::{Driver, PersistentKernels, PersistentStepId};
use super::kernel_call::KernelLaunch;
use super::memory::BufferSlice;
use super::persistent_step::{PersistentLaunch, PersistentStep};
use super::resources::ProgramCommands;
use crate::error::HalError;
use std::sync::Arc;
use yirage_plan::tasks::access::predecessors;
use yirage_plan::{ExecutorKind, Plan};

/// The step of a plan by its task program: its commands, where they are all launches.
fn persistent_step<D: Driver>(
    commands: &ProgramCommands<D>,
    plan: &Plan,
    sizes: BufferSlice,
) -> Result<PersistentStep, HalError> {
    let without = || HalError::Load("the plan has no persistent program".into());
    let program = plan.program(ExecutorKind::Persistent).ok_or_else(without)?;
    let before = predecessors(plan).map_err(|error| HalError::Load(error.to_string()))?;
    let mut launches = commands.launches_of_steps()?;
    let mut order = LaunchOrder::new(plan.steps.len());
    for task in &program.tasks {
        let step = task.step as usize;
        let of_step = launches.get_mut(step).map(std::mem::take).unwrap_or_default();
        order.add(step, before[step].iter().map(|earlier| earlier.step as usize), of_step);
    }
    Ok(PersistentStep { module: commands.module(), sizes, bucket: plan.bucket, launches: order.launches })
}

/// Launches in their order, and what is known of those so far.
struct LaunchOrder {
    launches: Vec<PersistentLaunch>,
    /// Of each launch, those that have certainly ended when it has, itself among them.
    ended: Vec<Vec<bool>>,
    /// Of each step, the launches with whose end it has ended.
    ends: Vec<Vec<u32>>,
    /// The last launch that has used the workspace, which all of them have in common.
    workspace: Option<u32>,
}

impl LaunchOrder {
    fn new(steps: usize) -> LaunchOrder {
        LaunchOrder { launches: Vec::new(), ended: Vec::new(), ends: vec![Vec::new(); steps], workspace: None }
    }

    /// Adds a step: its launches follow each other, the first of them the steps before.
    fn add(&mut self, step: usize, before: impl Iterator<Item = usize>, launches: Vec<KernelLaunch>) {
        let mut after: Vec<u32> = before.flat_map(|earlier| self.ends[earlier].clone()).collect();
        let uses_workspace = launches.iter().any(|launch| launch.workspace > 0);
        after.extend(self.workspace.filter(|_| uses_workspace));
        for launch in launches {
            after = vec![self.push(launch, after)];
        }
        if uses_workspace {
            self.workspace = after.first().copied();
        }
        self.ends[step] = after;
    }

    fn push(&mut self, launch: KernelLaunch, mut after: Vec<u32>) -> u32 {
        after.sort_unstable();
        after.dedup();
        // Of each launch it is known of those up to itself.
        let follows = |of: u32, by: u32| of < by && self.ended[by as usize][of as usize];
        let kept: Vec<u32> = after.iter().copied().filter(|&of| !after.iter().any(|&by| follows(of, by))).collect();
        let number = self.launches.len();
        let mut ended = vec![false; number + 1];
        ended[number] = true;
        for &earlier in &kept {
            let of_earlier = &self.ended[earlier as usize];
            ended.iter_mut().zip(of_earlier).for_each(|(mine, &other)| *mine |= other);
        }
        self.ended.push(ended);
        self.launches.push(PersistentLaunch { launch, after: kept });
        number as u32
    }
}

/// A step that its driver has made ready, with all that it touches: what may run is not given back before it has.
pub(super) struct PreparedStep<D: Driver> {
    account: Arc<DriverAccount<D>>,
    id: PersistentStepId,
    _pinned: Arc<ProgramCommands<D>>,
}

impl<D: Driver> PreparedStep<D> {
    /// Gives the commands of a program to its driver.
    pub(super) fn new(
        account: &Arc<DriverAccount<D>>,
        commands: &Arc<ProgramCommands<D>>,
        plan: &Plan,
        sizes: BufferSlice,
    ) -> Result<PreparedStep<D>, HalError> {
        let step = persistent_step(commands, plan, sizes)?;
        let id = persistent_kernels(&account.driver)?.prepare(&step)?;
        Ok(PreparedStep { account: account.clone(), id, _pinned: commands.clone() })
    }

    /// Submits the step.
    pub(super) fn run(&self) -> Result<(), HalError> {
        Ok(persistent_kernels(&self.account.driver)?.run(self.id)?)
    }
}

fn persistent_kernels<D: Driver>(driver: &D) -> Result<&dyn PersistentKernels, HalError> {
    let unsupported = || HalError::Unsupported {
        what: "a persistent executor".into(),
        why: "the device runs one launch after the other".into(),
    };
    driver.persistent_kernels().ok_or_else(unsupported)
}

impl<D: Driver> Drop for PreparedStep<D> {
    fn drop(&mut self) {
        if let Some(kernels) = self.account.driver.persistent_kernels() {
            kernels.release(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(workspace: u64) -> KernelLaunch {
        KernelLaunch { workspace, ..KernelLaunch::new("k", Vec::new(), Vec::new()) }
    }

    fn afters(steps: &[(&[usize], &[u64])]) -> Vec<Vec<u32>> {
        let mut order = LaunchOrder::new(steps.len());
        for (step, (before, launches)) in steps.iter().enumerate() {
            order.add(step, before.iter().copied(), launches.iter().map(|&bytes| kernel(bytes)).collect());
        }
        order.launches.into_iter().map(|launch| launch.after).collect()
    }

    #[test]
    fn a_launch_waits_for_no_more_than_it_has_to() {
        // A diamond, and a step that waits for its corners too.
        let diamond = afters(&[(&[], &[0]), (&[0], &[0]), (&[0], &[0]), (&[0, 1, 2], &[0]), (&[0, 1, 2, 3], &[0])]);
        assert_eq!(diamond, [vec![], vec![0], vec![0], vec![1, 2], vec![3]]);
    }

    #[test]
    fn launches_of_a_step_follow_each_other_and_an_empty_step_passes_on_what_it_waits_for() {
        assert_eq!(afters(&[(&[], &[0, 0]), (&[0], &[]), (&[1], &[0])]), [vec![], vec![0], vec![1]]);
    }

    #[test]
    fn steps_with_a_workspace_follow_each_other() {
        let steps: [(&[usize], &[u64]); 4] = [(&[], &[8, 0]), (&[], &[0]), (&[], &[0, 8]), (&[], &[8])];
        assert_eq!(afters(&steps), [vec![], vec![0], vec![], vec![1], vec![3], vec![4]]);
    }
}
