//! Chooses a kernel for every node.

use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::names;
use std::collections::HashMap;
use yirage_ir::{Dims, Graph, Node};
use yirage_plan::{
    KernelRef, OperandPlacement, Refusal, Target, WeightPlan, check_quantised, passed_over, select_kernel,
};

/// The kernels used and, for each node, which of them runs it.
pub(crate) fn run(
    graph: &Graph,
    target: &Target,
    weights: &WeightPlan,
    bucket: &Dims,
    decisions: &mut Decisions,
) -> Result<(Vec<KernelRef>, Vec<u32>), CompileError> {
    let mut used: Vec<KernelRef> = Vec::new();
    let mut index: HashMap<usize, u32> = HashMap::new();
    let mut chosen = Vec::with_capacity(graph.nodes.len());
    let lying = OperandPlacement::new(graph, weights, target, bucket);
    for node in &graph.nodes {
        let at = select_kernel(target, &lying, node).map_err(|why| no_kernel(graph, node, target, why))?;
        decisions.tell(|| {
            let over: Vec<String> = passed_over(target, &lying, node, at).iter().map(ToString::to_string).collect();
            let why = match &over[..] {
                [] => "of the kernels that run it the target wants this one most".to_string(),
                over => format!("passed over: {}", over.join("; ")),
            };
            Decision::done(names::of(graph, &node.outs), format!("run by {}", target.kernels[at].kernel.name), why)
        });
        let kernel = *index.entry(at).or_insert_with(|| {
            used.push(target.kernels[at].kernel.clone());
            used.len() as u32 - 1
        });
        chosen.push(kernel);
    }
    check_quantised(graph, target)
        .map_err(|why| CompileError::Unsupported { what: "this use of a quantised value".into(), why })?;
    Ok((used, chosen))
}

fn no_kernel(graph: &Graph, node: &Node, target: &Target, why: Refusal) -> CompileError {
    let types: Vec<String> = node.ins.iter().map(|&i| graph.ty(i).to_string()).collect();
    CompileError::NoKernel {
        target: target.describe(),
        op: node.name().to_string(),
        types: types.join(", "),
        why: Box::new(why),
    }
}
