//! Where the threads of a block wait for each other: before a step that touches what another thread has touched since the
//! last barrier, if one of the two writes.

use super::plan::TiledPlan;
use super::step::{BlockStep, MemoryAccess};

/// Whether there is a barrier before each step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StepBarriers {
    pub(super) before: Vec<bool>,
    pub(super) body: Vec<bool>,
    pub(super) after: Vec<bool>,
}

/// What was touched since the last barrier.
#[derive(Default)]
struct PendingAccesses {
    reads: Vec<MemoryAccess>,
    writes: Vec<MemoryAccess>,
}

impl StepBarriers {
    /// Of the steps of a block whose body is repeated, or not.
    pub(super) fn of(plan: &TiledPlan, repeats: bool) -> StepBarriers {
        let mut pending = PendingAccesses::default();
        let before = pending.barriers(&plan.before);
        let mut body = pending.barriers(&plan.body);
        if repeats {
            // What an iteration leaves, the next one finds.
            let next = pending.barriers(&plan.body);
            body.iter_mut().zip(next).for_each(|(waits, next)| *waits |= next);
        }
        StepBarriers { before, body, after: pending.barriers(&plan.after) }
    }
}

impl PendingAccesses {
    /// Whether there is a barrier before each of these steps.
    fn barriers(&mut self, steps: &[BlockStep]) -> Vec<bool> {
        steps.iter().map(|step| self.step(step)).collect()
    }

    fn step(&mut self, step: &BlockStep) -> bool {
        let meets = |one: MemoryAccess, others: &[MemoryAccess]| others.iter().any(|other| one.meets(other));
        let reads = step.reads().any(|read| meets(read, &self.writes));
        let writes = step.writes().any(|write| meets(write.clone(), &self.writes) || meets(write, &self.reads));
        let waits = reads || writes;
        if waits {
            *self = PendingAccesses::default();
        }
        for (known, found) in
            [(&mut self.reads, step.reads().collect::<Vec<_>>()), (&mut self.writes, step.writes().collect())]
        {
            found.into_iter().for_each(|access| {
                if !known.contains(&access) {
                    known.push(access)
                }
            });
        }
        waits
    }
}
