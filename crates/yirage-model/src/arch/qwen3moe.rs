//! Qwen3, mixture of experts (arXiv 2505.09388): softmax over all experts, then the choice.

use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use super::ffn::GatedMlp;
use super::qwen3;
use crate::error::ModelError;
use yirage_ir::F32;
use yirage_ir::op::{Route, Scoring};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let dense = dense_layers(e)?;
    let mlp = if dense.contains(&true) { Some(GatedMlp::read(e, false)?) } else { None };
    let experts = MoeLayer::read(e, "moe_intermediate_size", route(e)?)?;
    qwen3::with_feed_forward(e, &|e, l, x| match &mlp {
        Some(mlp) if dense[l as usize] => mlp.emit_layer(e, l, x),
        _ => experts.emit(e, l, x, &ExpertTensorNames::USUAL, None),
    })
}

/// The choice of experts.
pub(super) fn route(e: &ModelBuilder<'_>) -> Result<Route, ModelError> {
    Ok(Route {
        top_k: e.size("num_experts_per_tok")?,
        scoring: Scoring::Softmax,
        normalize: e.config.bool_or("norm_topk_prob", false)?,
        scale: F32(1.0),
        groups: 1,
        top_groups: 1,
    })
}

/// Which layers have no experts.
pub(super) fn dense_layers(e: &ModelBuilder<'_>) -> Result<Vec<bool>, ModelError> {
    let step = e.config.u32_or("decoder_sparse_step", 1)?;
    if step == 0 {
        return Err(e.config.invalid("decoder_sparse_step", "an integer above 0"));
    }
    let listed = e.config.opt_u32_list("mlp_only_layers")?.unwrap_or_default();
    Ok((0..e.config.layers()?).map(|l| listed.contains(&l) || !(l + 1).is_multiple_of(step)).collect())
}
