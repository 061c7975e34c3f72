//! What each step of a plan took, from a profile of steps that ran.

use std::collections::BTreeMap;
use yirage_hal::{Profile, RunSpan, TaskSpan};
use yirage_ir::Dims;
use yirage_plan::{ExecutorKind, Plan};

/// Times of a plan's steps.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanTimings {
    /// The executor that ran them.
    pub executor: ExecutorKind,
    /// Steps of the engine that count.
    pub steps: usize,
    /// Seconds of a whole one, the median.
    pub step_seconds: f64,
    /// For each step of the plan its seconds, the median: of each stage from the first task's begin to the last one's
    /// end, added up. None where no task of it ran.
    pub kernels: Vec<Option<f64>>,
    /// Tasks that the profile had no room for.
    pub dropped: u64,
}

impl PlanTimings {
    /// From the runs of `plan` in a profile whose steps had these sizes; none where there is no such run. Runs in steps
    /// are preferred: there nothing of another phase runs beside a kernel. The first run does not count where there are
    /// others, since it meets cold code.
    pub fn new(plan: &Plan, dims: &Dims, profile: &Profile) -> Option<PlanTimings> {
        let of_plan = |run: &RunSpan| {
            let program = profile.programs.get(run.program);
            let same = program.is_some_and(|p| p.graph == plan.graph.name && p.bucket == plan.bucket);
            let known = program.is_some_and(|p| p.steps.len() == plan.steps.len() && p.programs == plan.programs);
            same && known && (run.tokens, run.seqs) == (dims.tokens, dims.seqs)
        };
        let all: Vec<usize> = (0..profile.runs.len()).filter(|&r| of_plan(&profile.runs[r])).collect();
        let by = |kind: ExecutorKind| all.iter().copied().filter(move |&r| profile.runs[r].kind == kind);
        let executor = ExecutorKind::ALL.into_iter().find(|&kind| by(kind).next().is_some())?;
        let warm = usize::from(by(executor).nth(1).is_some());
        let runs: Vec<usize> = by(executor).skip(warm).collect();
        let mut taken: Vec<Vec<f64>> = vec![Vec::new(); plan.steps.len()];
        for &run in &runs {
            for (step, seconds) in stages(profile, run) {
                if let Some(taken) = taken.get_mut(step) {
                    taken.push(seconds);
                }
            }
        }
        let whole = runs.iter().map(|&r| seconds(profile.runs[r].began, profile.runs[r].ended)).collect();
        Some(PlanTimings {
            executor,
            steps: runs.len(),
            step_seconds: median(whole)?,
            kernels: taken.into_iter().map(median).collect(),
            dropped: profile.dropped,
        })
    }
}

/// For each step of the plan that had a task in a run, the seconds of its stages.
fn stages(profile: &Profile, run: usize) -> BTreeMap<usize, f64> {
    let Some(program) = profile.program_of(&profile.runs[run]) else { return BTreeMap::new() };
    let mut spans: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for TaskSpan { task, began, ended, .. } in profile.tasks.iter().filter(|t| t.run == run).copied() {
        let Some(task) = program.tasks.get(task as usize) else { continue };
        let span = spans.entry((task.step, task.stage)).or_insert((began, ended));
        *span = (span.0.min(began), span.1.max(ended));
    }
    let mut steps = BTreeMap::new();
    for ((step, _), (began, ended)) in spans {
        *steps.entry(step as usize).or_insert(0.0) += seconds(began, ended);
    }
    steps
}

fn seconds(began: u64, ended: u64) -> f64 {
    ended.saturating_sub(began) as f64 / 1e9
}

/// The one in the middle; the upper of two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
