//! Each step of a plan beside what the limits allow for it.

use crate::report::{KernelReport, ReportInput};
use yirage_plan::work::{Costs, activation_bytes};

pub(crate) fn kernels(subject: &ReportInput<'_>) -> Vec<KernelReport> {
    (0..subject.plan.steps.len()).map(|step| kernel(subject, step)).collect()
}

fn kernel(subject: &ReportInput<'_>, index: usize) -> KernelReport {
    let (plan, step) = (subject.plan, &subject.plan.steps[index]);
    let node = &plan.graph.nodes[step.node as usize];
    let work = Costs::of_node(&plan.graph, node, subject.sizes).step(subject.step.spans);
    let activations = activation_bytes(&plan.graph, node, plan.target(), &subject.step);
    let memory = subject.ceilings.memory_seconds(work.bytes() + activations);
    let arithmetic = subject.ceilings.arithmetic_seconds(&work, subject.limit_of);
    let both = memory.zip(arithmetic);
    let predicted = both.map(|(memory, arithmetic)| memory.max(arithmetic));
    let measured = subject.measured.and_then(|m| m.kernels.get(index).copied().flatten());
    let share = predicted.zip(measured).and_then(|(least, took)| (took > 0.0).then_some(least / took));
    KernelReport {
        step: index,
        phase: step.phase,
        op: node.name().to_string(),
        value: node.outs.first().map_or_else(String::new, |&o| plan.graph.value(o).name.clone()),
        kernel: plan.kernels[step.kernel as usize].name.clone(),
        weight_bytes: work.weight_bytes,
        cache_bytes: work.cache_bytes,
        activation_bytes: activations,
        operations: work.ops(),
        memory_seconds: memory,
        arithmetic_seconds: arithmetic,
        predicted_seconds: predicted,
        bound: both.map(|(memory, arithmetic)| if memory >= arithmetic { "memory" } else { "arithmetic" }),
        measured_seconds: measured,
        share_of_limit: share,
    }
}
