//! From a plan and what is known of its device to the report.

use crate::kernels::kernels;
use crate::memory::memory;
use crate::regions::regions;
use crate::report::{
    DecisionReport, DeviceCeiling, ExecutorReport, MeasuredReport, PassReport, ProgramReport, Report, ReportInput,
};
use yirage_compile::{PassDecisions, PassVerdict};
use yirage_hal::{Limit, SelectionReason};
use yirage_plan::{ExecutorKind, VerifiedPlan};

/// Everything that is known of a plan.
pub fn report(subject: &ReportInput<'_>) -> Report {
    let plan = subject.plan;
    let kernels = kernels(subject);
    let least = kernels.iter().map(|k| k.predicted_seconds).sum::<Option<f64>>();
    let pass = |p: &PassDecisions| PassReport {
        pass: p.pass,
        before: p.before,
        after: p.after,
        decisions: p.decisions.iter().map(decided).collect(),
    };
    Report {
        graph: plan.graph.name.clone(),
        target: plan.target.clone(),
        precision: plan.precision.to_string(),
        bucket: plan.bucket.into(),
        step: subject.step.dims.into(),
        passes: subject.passes.iter().map(pass).collect(),
        regions: regions(plan, subject.passes),
        ceilings: subject.ceilings.all().iter().map(ceiling).collect(),
        kernels,
        least_seconds: least,
        memory: memory(plan),
        executor: executor(plan, subject.chosen),
        variant: subject.variant.clone(),
        measured: subject.measured.map(|m| MeasuredReport {
            executor: m.executor.name(),
            steps: m.steps,
            step_seconds: m.step_seconds,
            dropped: m.dropped,
        }),
    }
}

fn decided(decision: &yirage_compile::Decision) -> DecisionReport {
    let yirage_compile::Decision { verdict, values, what, why } = decision.clone();
    DecisionReport { done: verdict == PassVerdict::Done, values, what, why }
}

fn ceiling((limit, rate): &(Limit, f64)) -> DeviceCeiling {
    DeviceCeiling { limit: limit.to_string(), per_second: *rate }
}

fn executor(plan: &VerifiedPlan, chosen: Option<(ExecutorKind, SelectionReason)>) -> ExecutorReport {
    let (kinds, workers) = (&plan.target().executors, plan.target().queues());
    let first = || {
        let kind = kinds.first().copied().unwrap_or(ExecutorKind::Steps);
        // A plan does not say whether its device has a clock.
        (kind, SelectionReason::at_first(kinds.len(), workers as usize, false))
    };
    let (chosen, why) = chosen.unwrap_or_else(first);
    let program = |&kind: &ExecutorKind| {
        let program = plan.program(kind);
        ProgramReport {
            executor: kind.name(),
            tasks: program.map(|p| p.tasks.len()),
            waits: program.map(|p| p.tasks.iter().map(|t| t.waits.len()).sum()),
        }
    };
    let programs = kinds.iter().map(program).collect();
    ExecutorReport { chosen: chosen.name(), why: why.to_string(), workers, programs }
}
