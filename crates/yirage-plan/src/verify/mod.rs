//! Plans that are proved. What is checked here, once, is what every device relies on.

mod interface;
mod kernels;
mod placements;
mod quantised;
mod steps;

pub use quantised::check_quantised;

use crate::error::PlanError;
use crate::plan::Plan;
use crate::target::Target;
use std::ops::Deref;

/// A plan of which everything is proved that code may rely on that runs it without looking. There is no other way to one
/// than [`VerifiedPlan::new`], and a device loads nothing else.
///
/// What holds:
///
/// - **The graph is sound** ([`yirage_ir::verify()`]): values are made once, before they are read, of the types that
///   the ops infer; regions hold what their kind allows; weights and states have fixed shapes.
/// - **Sizes are numbers.** Each symbol of the bucket is from 1 to [`crate::limits::MAX_SYMBOL`]; what a step input
///   holds at those sizes is at most [`crate::limits::MAX_STEP_INPUT_BYTES`], what a placed value takes lies in the
///   arena, which is at most [`crate::limits::MAX_ARENA`]. So `elems` and `bytes` of these types do not overflow for
///   any sizes within the bucket.
/// - **Step inputs** are of plain numbers ([`yirage_ir::DType::is_plain`]: f32, f16, bf16, i32, u32, bool), dense or
///   with strides, and no quantised activations.
/// - **KV caches** have no strides, and those of keys and values a layout of the target, of their format and length of
///   a block.
/// - **Outputs** are KV caches, or computed values of plain numbers, as step inputs are.
/// - **Weights**: each has one entry with its type and a layout of the target, of its format; all that read it in a
///   layout of products' matrices read it as the same number of them.
/// - **Steps**: each node runs once, after the makers of what it reads.
/// - **Kernels** are the target's: of that name, variant, stages and scratch; each takes the node that it is given,
///   input by input, by its rules ([`crate::rules`]).
/// - **Quantised activations** are read by products of one kind, in the parts in which they were made.
/// - **Places**: each computed value that is no state has one, at a multiple of the target's alignment, of at least the
///   bytes that its type takes on the target in the bucket; inside the arena; apart from all that lives at the same
///   time.
/// - **Programs**: one for each executor of the target that runs one, for its number of workers; each ends, runs every
///   stage of every step exactly once, and has no race ([`crate::tasks::verify::check`]).
///
/// What does not: that the weights and states that a name is bound to are of the plan's types, which a device compares
/// when it binds them; and what step inputs hold.
#[derive(Clone, PartialEq, Debug)]
pub struct VerifiedPlan {
    plan: Plan,
    target: Target,
}

impl VerifiedPlan {
    /// Proves a plan for a target.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn new(plan: Plan, target: &Target) -> Result<VerifiedPlan, PlanError> {
        if plan.target != target.describe() {
            return Err(PlanError(format!("it is made for `{}`, not for `{}`", plan.target, target.describe())));
        }
        // Proves: **The graph is sound** ([`yirage_ir::verify()`]): values are made once, before they are read, of the types that
        // the ops infer; regions hold what their kind allows; weights and states have fixed shapes.
        yirage_ir::verify(&plan.graph).map_err(|e| PlanError(e.to_string()))?;
        interface::check(&plan, target)?;
        let phases = steps::phases(&plan)?;
        kernels::check(&plan, target)?;
        placements::check(&plan, target, &phases)?;
        crate::tasks::verify::check(&plan, target)?;
        Ok(VerifiedPlan { plan, target: target.clone() })
    }

    /// What it was proved for: a device loads the plans of its own target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The plan, to be changed: it has to be proved again.
    pub fn into_plan(self) -> Plan {
        self.plan
    }
}

impl Deref for VerifiedPlan {
    type Target = Plan;
    fn deref(&self) -> &Plan {
        &self.plan
    }
}
