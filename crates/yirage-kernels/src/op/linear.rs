//! `linear`: activations times a weight matrix of any stored format.

use super::{OpKernels, float_operands, stored_weights, weight_matmul};
use yirage_ir::op::{Linear, OpDef};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels = OpKernels {
    op: Linear::NAME,
    rules: || vec![OpRule::new(Linear::NAME, vec![float_operands(), stored_weights()])],
    lower: weight_matmul::lower,
};
