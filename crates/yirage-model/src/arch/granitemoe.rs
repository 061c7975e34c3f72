//! Granite 3, mixture of experts (IBM, 2024): the choice of experts by logit, then softmax over the chosen.

use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use super::granite;
use crate::error::ModelError;
use yirage_ir::F32;
use yirage_ir::op::{Route, Scoring};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let experts = experts(e)?;
    granite::with_feed_forward(e, &|e, l, x| experts.emit(e, l, x, &TENSORS, None))
}

/// What the experts' tensors are called.
pub(super) const TENSORS: ExpertTensorNames = ExpertTensorNames::Stacked {
    router: "block_sparse_moe.router.layer",
    gate_up: "block_sparse_moe.input_linear.weight",
    down: "block_sparse_moe.output_linear.weight",
};

pub(super) fn experts(e: &ModelBuilder<'_>) -> Result<MoeLayer, ModelError> {
    let (top_k, scoring) = (e.size("num_experts_per_tok")?, Scoring::SoftmaxTopK);
    let route = Route { top_k, scoring, normalize: false, scale: F32(1.0), groups: 1, top_groups: 1 };
    MoeLayer::read(e, "intermediate_size", route)
}
