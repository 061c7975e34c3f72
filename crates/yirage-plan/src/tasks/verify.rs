//! What must hold for every task program before a device runs it.

use super::access::{Extent, Predecessor, predecessors};
use super::order::Clocks;
use crate::error::PlanError;
use crate::limits::{MAX_CLOCKS, MAX_TASKS, MAX_WORKERS};
use crate::plan::Plan;
use crate::program::{ExecutorKind, Partitioning, Task, TaskPartition, TaskProgram};
use crate::target::Target;

fn error(kind: ExecutorKind, what: String) -> PlanError {
    PlanError(format!("program `{kind}`: {what}"))
}

// Proves: **Programs**: one for each executor of the target that runs one, for its number of workers; each ends, runs every stage of
// every step exactly once, and has no race ([`crate::tasks::verify::check`]).
/// Checks all programs of a plan whose graph, steps and places are sound:
///
/// - there is one for each executor of the target that runs one, in its order, with a queue for each worker;
/// - every worker's queue and the waits have a common linear extension (the list of tasks is one), and every threshold
///   is reached: so the program ends, whatever the speed of the workers;
/// - every stage of every step runs exactly once, in as many shares as it is divided into;
/// - a stage begins after all of the stage before it, and a step after all of every earlier step that writes what it
///   reads or touches what it writes: so there is no race, and every read sees its write. Where all that they share is
///   rows that both divide alike, a share waits for the share of the same rows alone. That holds at all sizes: equal
///   shares of equal numbers of rows are the same rows, however many there are.
pub fn check(plan: &Plan, target: &Target) -> Result<(), PlanError> {
    // A device records a replay by itself.
    let wanted = target.executors.iter().copied().filter(|&k| k != ExecutorKind::Replay);
    if !plan.programs.iter().map(|p| p.kind).eq(wanted) {
        let given: Vec<&str> = plan.programs.iter().map(|p| p.kind.name()).collect();
        return Err(PlanError(format!("programs for {given:?}; the target has the executors {:?}", target.executors)));
    }
    let before = predecessors(plan)?;
    for program in &plan.programs {
        check_sizes(program, target.queues() as usize)?;
        let clocks = Clocks::of(program).map_err(|e| error(program.kind, e.0))?;
        let stages = stages(plan, program)?;
        check_order(plan, program, &clocks, &stages, &before)?;
    }
    Ok(())
}

fn check_sizes(program: &TaskProgram, workers: usize) -> Result<(), PlanError> {
    let (tasks, queues, counters) = (program.tasks.len(), program.queues.len(), program.counters as usize);
    if queues != workers || workers > MAX_WORKERS {
        let what = format!("it is for {queues} workers, the target has {workers} of at most {MAX_WORKERS}");
        return Err(error(program.kind, what));
    }
    if tasks > MAX_TASKS || counters > MAX_TASKS || tasks * workers > MAX_CLOCKS {
        let what = format!("{tasks} tasks, {counters} counters; at most {MAX_TASKS}, and {MAX_CLOCKS} tasks x workers");
        return Err(error(program.kind, what));
    }
    Ok(())
}

/// The tasks of each step, stage after stage.
fn stages(plan: &Plan, program: &TaskProgram) -> Result<Vec<Vec<Vec<u32>>>, PlanError> {
    let numbers: Vec<Vec<(u32, Partitioning)>> = (0..plan.steps.len()).map(|s| plan.stages(s).collect()).collect();
    let mut tasks: Vec<Vec<Vec<u32>>> = numbers.iter().map(|n| vec![Vec::new(); n.len()]).collect();
    for (t, task) in program.tasks.iter().enumerate() {
        let step = task.step as usize;
        let at = numbers.get(step).and_then(|s| s.iter().position(|(stage, _)| *stage == task.stage));
        let none = || error(program.kind, format!("task {t} is of stage {} of step {step}: none such", task.stage));
        let at = at.ok_or_else(none)?;
        tasks[step][at].push(t as u32);
    }
    for (step, stages) in tasks.iter().enumerate() {
        for (at, of_stage) in stages.iter().enumerate() {
            let parts: Vec<TaskPartition> = of_stage.iter().map(|&t| program.tasks[t as usize].partition).collect();
            let (stage, sharing) = numbers[step][at];
            // More parts than workers would be no sharing, and comparing their orders would take long.
            if parts.len() > program.queues.len() || !whole(&parts, sharing) {
                let what = format!("stage {stage} of step {step} ({}) is not done once", plan.step_name(step));
                return Err(error(program.kind, what));
            }
        }
    }
    Ok(tasks)
}

/// Whether the parts are all of a stage.
fn whole(parts: &[TaskPartition], sharing: Partitioning) -> bool {
    let mut seen = vec![false; parts.len()];
    let fits = |part: &TaskPartition| match (sharing, *part) {
        (Partitioning::WorkQueue, TaskPartition::WorkQueue) => true,
        (Partitioning::Static | Partitioning::Rows, TaskPartition::Static { index, of })
            if of as usize == parts.len() =>
        {
            seen.get_mut(index as usize).is_some_and(|s| !std::mem::replace(s, true))
        }
        _ => false,
    };
    !parts.is_empty() && parts.iter().all(fits)
}

fn check_order(
    plan: &Plan,
    program: &TaskProgram,
    clocks: &Clocks,
    stages: &[Vec<Vec<u32>>],
    before: &[Vec<Predecessor>],
) -> Result<(), PlanError> {
    let all = |a: &[u32], b: &[u32]| -> Result<(), (u32, u32)> {
        let pairs = a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b)));
        pairs.into_iter().find(|&(a, b)| !clocks.before(a, b)).map_or(Ok(()), Err)
    };
    let index = |t: u32| match program.tasks[t as usize].partition {
        TaskPartition::Static { index, .. } => Some(index),
        TaskPartition::WorkQueue => None,
    };
    let same = |a: &[u32], b: &[u32]| -> Result<(), (u32, u32)> {
        let by_index = |tasks: &[u32]| {
            let mut tasks = tasks.to_vec();
            tasks.sort_unstable_by_key(|&t| index(t));
            tasks
        };
        let mut pairs = by_index(a).into_iter().zip(by_index(b));
        pairs.find(|&(a, b)| !clocks.before(a, b)).map_or(Ok(()), Err)
    };
    let describe = |(a, b): (u32, u32)| {
        let name = |t: u32| {
            let Task { step, stage, .. } = program.tasks[t as usize];
            format!("task {t} (stage {stage} of step {step}, {})", plan.step_name(step as usize))
        };
        error(program.kind, format!("{} does not wait for {}", name(b), name(a)))
    };
    for (step, own) in stages.iter().enumerate() {
        for pair in own.windows(2) {
            all(&pair[0], &pair[1]).map_err(describe)?;
        }
        // Stages follow each other, so the last of one step and the first of the other say all.
        let Some(first) = own.first() else { continue };
        for &Predecessor { step: earlier, extent } in &before[step] {
            let last = stages[earlier as usize].last().map_or(&[][..], Vec::as_slice);
            // Shares of another number are other rows.
            match extent == Extent::SameRows && last.len() == first.len() {
                true => same(last, first),
                false => all(last, first),
            }
            .map_err(describe)?;
        }
    }
    Ok(())
}
