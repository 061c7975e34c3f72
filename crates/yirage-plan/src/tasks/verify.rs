//! What must hold for every task program before a device runs it.

use super::access::predecessors;
use super::order::Clocks;
use super::{ExecutorKind, Part, Sharing, Task, TaskProgram};
use crate::limits::{MAX_TASKS, MAX_WORKERS};
use crate::plan::Plan;
use crate::verify::PlanError;

fn error(kind: ExecutorKind, what: String) -> PlanError {
    PlanError(format!("program `{kind}`: {what}"))
}

/// Checks all programs of a plan whose graph, steps and places are sound:
///
/// - every worker's queue and the waits have a common linear extension (the list of tasks is one), and every threshold
///   is reached: so the program ends, whatever the speed of the workers;
/// - every stage of every step runs exactly once, in as many shares as it is divided into;
/// - a stage begins after all of the stage before it, and a step after all of every earlier step that writes what it
///   reads or touches what it writes: so there is no race, and every read sees its write.
pub fn verify(plan: &Plan) -> Result<(), PlanError> {
    if plan.programs.is_empty() {
        return Ok(());
    }
    let before = predecessors(plan)?;
    for (i, program) in plan.programs.iter().enumerate() {
        if plan.programs[..i].iter().any(|p| p.kind == program.kind) {
            return Err(error(program.kind, "is there twice".into()));
        }
        check_sizes(program)?;
        let clocks = Clocks::of(program).map_err(|e| error(program.kind, e.0))?;
        let stages = stages(plan, program)?;
        check_order(plan, program, &clocks, &stages, &before)?;
    }
    Ok(())
}

fn check_sizes(program: &TaskProgram) -> Result<(), PlanError> {
    let (tasks, workers, counters) = (program.tasks.len(), program.queues.len(), program.counters as usize);
    if workers == 0 || workers > MAX_WORKERS || tasks > MAX_TASKS || counters > MAX_TASKS {
        let limits = format!("1 to {MAX_WORKERS} workers, {MAX_TASKS} tasks and counters");
        return Err(error(program.kind, format!("{tasks} tasks, {counters} counters, {workers} workers; {limits}")));
    }
    Ok(())
}

/// The tasks of each step, stage after stage.
fn stages(plan: &Plan, program: &TaskProgram) -> Result<Vec<Vec<Vec<u32>>>, PlanError> {
    let numbers: Vec<Vec<(u32, Sharing)>> = (0..plan.steps.len()).map(|s| plan.stages(s).collect()).collect();
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
            let parts: Vec<Part> = of_stage.iter().map(|&t| program.tasks[t as usize].part).collect();
            let (stage, sharing) = numbers[step][at];
            if !whole(&parts, sharing) {
                let what = format!("stage {stage} of step {step} ({}) is not done once", plan.step_name(step));
                return Err(error(program.kind, what));
            }
        }
    }
    Ok(tasks)
}

/// Whether the parts are all of a stage.
fn whole(parts: &[Part], sharing: Sharing) -> bool {
    let mut seen = vec![false; parts.len()];
    let fits = |part: &Part| match (sharing, *part) {
        (Sharing::Drained, Part::Drain) => true,
        (Sharing::Shares, Part::Share { index, of }) if of as usize == parts.len() => {
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
    before: &[Vec<u32>],
) -> Result<(), PlanError> {
    let all = |a: &[u32], b: &[u32]| -> Result<(), (u32, u32)> {
        let pairs = a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b)));
        pairs.into_iter().find(|&(a, b)| !clocks.before(a, b)).map_or(Ok(()), Err)
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
        for &earlier in &before[step] {
            let last = stages[earlier as usize].last().map_or(&[][..], Vec::as_slice);
            all(last, first).map_err(describe)?;
        }
    }
    Ok(())
}
