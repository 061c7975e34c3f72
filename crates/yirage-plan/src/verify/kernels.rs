//! The kernels are the target's, and each takes the nodes that it is given.

use super::quantised::check_quantised;
use crate::accept::OperandPlacement;
use crate::error::PlanError;
use crate::plan::{KernelRef, Plan};
use crate::target::{KernelFacts, Target};

// Proves: **Kernels** are the target's: of that name, variant, stages and scratch; each takes the node that it is given, input by
// input, by its rules ([`crate::rules`]).
/// Checks the kernels of a plan whose graph and steps are sound.
pub(super) fn check(plan: &Plan, target: &Target) -> Result<(), PlanError> {
    let facts = plan.kernels.iter().map(|k| of_target(k, target)).collect::<Result<Vec<_>, _>>()?;
    let lying = OperandPlacement::new(&plan.graph, &plan.weights, target, &plan.bucket);
    for step in &plan.steps {
        let node = &plan.graph.nodes[step.node as usize];
        let checked = facts[step.kernel as usize].check(&lying, node);
        checked.map_err(|why| PlanError(format!("node {}: {why}", step.node)))?;
    }
    check_quantised(&plan.graph, target).map_err(PlanError)
}

/// The target's facts of a kernel, which must be those of the plan.
fn of_target<'a>(kernel: &KernelRef, target: &'a Target) -> Result<&'a KernelFacts, PlanError> {
    let missing = || PlanError(format!("the target {} has no kernel {}", target.describe(), kernel.name));
    let facts = target.kernel(&kernel.name).ok_or_else(missing)?;
    let differs = |what: &str| Err(PlanError(format!("kernel {} has other {what} on the target", kernel.name)));
    match &facts.kernel {
        known if known.variant != kernel.variant => differs("variants"),
        known if known.stages != kernel.stages => differs("stages"),
        known if known.scratch != kernel.scratch => differs("scratch"),
        _ => Ok(facts),
    }
}
