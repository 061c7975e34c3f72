//! `linear`: activations times a weight matrix of any stored format.

use super::{OpKernels, float_operands, weight_matmul, weights_in_parts};
use yirage_ir::op::{Linear, OpDef};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels = OpKernels {
    op: Linear::NAME,
    rules: || vec![OpRule::new(Linear::NAME, vec![float_operands(), weights_in_parts()])],
    lower: weight_matmul::lower,
};
