//! Each node runs once, after the makers of what it reads.

use crate::error::PlanError;
use crate::plan::{Plan, PlanStep};
use yirage_ir::ValueSource;

// Proves: **Steps**: each node runs once, after the makers of what it reads.
/// The phase of each node.
pub(super) fn phases(plan: &Plan) -> Result<Vec<u32>, PlanError> {
    let mut phase = vec![None; plan.graph.nodes.len()];
    let mut last = 0;
    for PlanStep { node, kernel, phase: p } in &plan.steps {
        let slot =
            phase.get_mut(*node as usize).ok_or_else(|| PlanError(format!("step of node {node}: no such node")))?;
        if slot.replace(*p).is_some() {
            return Err(PlanError(format!("node {node} runs twice")));
        }
        if *kernel as usize >= plan.kernels.len() {
            return Err(PlanError(format!("step of node {node}: no kernel {kernel}")));
        }
        // Phases are no more than steps, so that one more is a number.
        if *p != last && Some(*p) != last.checked_add(1) {
            return Err(PlanError(format!("phase {p} follows phase {last}")));
        }
        last = *p;
    }
    let missing = |n: usize| PlanError(format!("node {n} never runs"));
    let phase: Vec<u32> =
        phase.into_iter().enumerate().map(|(n, p)| p.ok_or_else(|| missing(n))).collect::<Result<_, _>>()?;
    check_order(plan, &phase)?;
    Ok(phase)
}

fn check_order(plan: &Plan, phase: &[u32]) -> Result<(), PlanError> {
    for (n, node) in plan.graph.nodes.iter().enumerate() {
        for &i in &node.ins {
            if let ValueSource::Node { node: maker, .. } = plan.graph.value(i).source
                && phase[maker as usize] >= phase[n]
            {
                return Err(PlanError(format!("node {n} reads `{}` before it is whole", plan.graph.value(i).name)));
            }
        }
    }
    Ok(())
}
