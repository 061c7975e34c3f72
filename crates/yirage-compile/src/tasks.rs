//! Cuts steps into tasks: one program for each executor that runs programs.

use yirage_plan::tasks::access::{Extent, predecessors};
use yirage_plan::{ExecutorKind, Partitioning, Plan, PlanError, Task, TaskPartition, TaskProgram, Wait};

/// The programs of a plan whose steps and places are final, in the order of `kinds`.
pub(crate) fn programs(plan: &Plan, kinds: &[ExecutorKind], workers: u32) -> Result<Vec<TaskProgram>, PlanError> {
    let program = |&kind: &ExecutorKind| match kind {
        ExecutorKind::Steps => Some(Ok(steps(plan, workers))),
        ExecutorKind::Persistent => Some(persistent(plan, workers)),
        // A device records a replay by itself.
        ExecutorKind::Replay => None,
    };
    kinds.iter().filter_map(program).collect()
}

/// The tasks of a stage: every worker has one.
fn parts(sharing: Partitioning, workers: u32) -> impl Iterator<Item = TaskPartition> {
    (0..workers).map(move |index| match sharing {
        Partitioning::Static | Partitioning::Rows => TaskPartition::Static { index, of: workers },
        Partitioning::WorkQueue => TaskPartition::WorkQueue,
    })
}

fn empty(kind: ExecutorKind, workers: u32) -> TaskProgram {
    TaskProgram { kind, counters: 0, tasks: Vec::new(), queues: vec![Vec::new(); workers as usize] }
}

/// One counter a group: the stages number n of all steps of a phase. Each group waits for all of the one before.
fn steps(plan: &Plan, workers: u32) -> TaskProgram {
    let mut program = empty(ExecutorKind::Steps, workers);
    let mut groups: Vec<Vec<(u32, u32, Partitioning)>> = Vec::new();
    let mut first = 0;
    for (s, step) in plan.steps.iter().enumerate() {
        if s == 0 || plan.steps[s - 1].phase != step.phase {
            first = groups.len();
        }
        for (at, (stage, sharing)) in plan.stages(s).enumerate() {
            if groups.len() == first + at {
                groups.push(Vec::new());
            }
            groups[first + at].push((s as u32, stage, sharing));
        }
    }
    for (g, group) in groups.iter().enumerate() {
        let before = g.checked_sub(1).map(|b| Wait { counter: b as u32, at_least: groups[b].len() as u32 * workers });
        for (at, &(step, stage, sharing)) in group.iter().enumerate() {
            for (worker, part) in parts(sharing, workers).enumerate() {
                // A worker's later tasks of the group have waited with its first.
                let waits = before.filter(|_| at == 0).into_iter().collect();
                program.queues[worker].push(program.tasks.len() as u32);
                program.tasks.push(Task { step, stage, partition: part, waits, signals: g as u32 });
            }
        }
    }
    program.counters = groups.len() as u32;
    program
}

/// One counter a worker, which counts its finished tasks; a task waits for the workers whose tasks it needs, and only
/// where that does not follow from what they or itself have waited for. Share i of every stage is worker i's, so shares of
/// the same rows follow each other in one queue without a wait.
fn persistent(plan: &Plan, workers: u32) -> Result<TaskProgram, PlanError> {
    let before = predecessors(plan)?;
    let n = workers as usize;
    let mut program = TaskProgram { counters: workers, ..empty(ExecutorKind::Persistent, workers) };
    // What has ended, by worker, once the task at each place of each queue has ended.
    let mut ended: Vec<Vec<Vec<u32>>> = vec![Vec::new(); n];
    // How far each queue must be for each step to have ended.
    let mut ends: Vec<Vec<u32>> = Vec::new();
    for (s, before) in before.iter().enumerate() {
        let mut needed = vec![0; n];
        // The share of the same rows is one of the same worker's earlier tasks: its queue says all.
        for earlier in before.iter().filter(|earlier| earlier.extent == Extent::Whole) {
            raise(&mut needed, &ends[earlier.step as usize]);
        }
        for (stage, sharing) in plan.stages(s) {
            let waits = reduced(&needed, &ended);
            for (worker, part) in parts(sharing, workers).enumerate() {
                let mut clock = ended[worker].last().cloned().unwrap_or_else(|| vec![0; n]);
                let still = waits.iter().filter(|w| clock[w.counter as usize] < w.at_least);
                let waits: Vec<Wait> = still.copied().collect();
                raise(&mut clock, &needed);
                clock[worker] = ended[worker].len() as u32 + 1;
                ended[worker].push(clock);
                program.queues[worker].push(program.tasks.len() as u32);
                program.tasks.push(Task { step: s as u32, stage, partition: part, waits, signals: worker as u32 });
            }
            needed = ended.iter().map(|e| e.len() as u32).collect();
        }
        ends.push(needed);
    }
    Ok(program)
}

fn raise(clock: &mut [u32], other: &[u32]) {
    clock.iter_mut().zip(other).for_each(|(mine, &other)| *mine = (*mine).max(other));
}

/// `needed` as waits, without those that follow from another.
fn reduced(needed: &[u32], ended: &[Vec<Vec<u32>>]) -> Vec<Wait> {
    let clock = |w: usize| &ended[w][needed[w] as usize - 1];
    let follows = |w: usize, by: usize| by != w && needed[by] > 0 && clock(by)[w] >= needed[w];
    let wanted = (0..needed.len()).filter(|&w| needed[w] > 0 && !(0..needed.len()).any(|by| follows(w, by)));
    wanted.map(|w| Wait { counter: w as u32, at_least: needed[w] }).collect()
}
