//! The fused nodes of a plan, with what was decided of the values inside.

use crate::report::RegionReport;
use yirage_compile::{PassDecisions, PassVerdict};
use yirage_ir::{NodeKind, Op};
use yirage_plan::Plan;

pub(crate) fn regions(plan: &Plan, passes: &[PassDecisions]) -> Vec<RegionReport> {
    let mut regions = Vec::new();
    for (n, node) in plan.graph.nodes.iter().enumerate() {
        let NodeKind::Region(region) = &node.kind else { continue };
        let made = region.graph.nodes.iter().flat_map(|inner| &inner.outs);
        let inside: Vec<&str> = made.map(|&v| region.graph.value(v).name.as_str()).collect();
        regions.push(RegionReport {
            node: n,
            kind: region.kind.name(),
            values: node.outs.iter().map(|&o| plan.graph.value(o).name.clone()).collect(),
            ops: region.ops().map(Op::name).collect(),
            reasons: reasons(passes, &inside),
        });
    }
    regions
}

/// What was done to these values by passes that fuse, each reason once. The choice of a kernel is told with the kernel.
fn reasons(passes: &[PassDecisions], inside: &[&str]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for pass in passes.iter().filter(|p| p.pass != "select") {
        for decision in pass.decisions.iter().filter(|d| d.verdict == PassVerdict::Done) {
            if decision.values.iter().any(|v| inside.contains(&v.as_str())) {
                let reason = format!("{}: {}: {}", pass.pass, decision.what, decision.why);
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
    }
    reasons
}
