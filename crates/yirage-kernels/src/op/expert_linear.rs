//! `expert_linear`: activations times the weights of the experts that each token has chosen.

use super::{OpKernels, float_operands, integer_operands, stored_weights, weight_matmul};
use yirage_ir::op::{ExpertLinear, OpDef};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels = OpKernels {
    op: ExpertLinear::NAME,
    rules: || vec![OpRule::new(ExpertLinear::NAME, vec![float_operands(), stored_weights(), integer_operands()])],
    lower: weight_matmul::lower,
};
