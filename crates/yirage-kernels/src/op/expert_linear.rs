//! `expert_linear`: activations times the weights of the experts that each token has chosen.

use super::{OpKernels, float_operands, integer_operands, weight_matmul, weights_in_parts};
use yirage_ir::op::{ExpertLinear, OpDef};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels = OpKernels {
    op: ExpertLinear::NAME,
    rules: || vec![OpRule::new(ExpertLinear::NAME, vec![float_operands(), weights_in_parts(), integer_operands()])],
    lower: weight_matmul::lower,
};
