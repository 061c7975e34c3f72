//! Experts as DeepSeek lays them out: dense layers first, then chosen experts beside shared ones.
//!
//! It does not know how scores become a choice: that is the route's matter.

use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use super::ffn::GatedMlp;
use crate::error::ModelError;
use yirage_ir::op::{Route, Scoring};
use yirage_ir::{F32, ValueId};

/// The feed-forward part of every layer.
pub(super) struct DeepseekMoe {
    mlp: GatedMlp,
    experts: MoeLayer,
    shared: Option<GatedMlp>,
    /// Layers without experts, from the first on.
    dense: u32,
}

impl DeepseekMoe {
    /// From the usual keys.
    pub(super) fn read(e: &ModelBuilder<'_>, route: Route) -> Result<DeepseekMoe, ModelError> {
        let mlp = GatedMlp::read(e, e.config.bool_or("mlp_bias", false)?)?;
        let experts = MoeLayer::read(e, "moe_intermediate_size", route)?;
        let shared = match e.config.u32_or("n_shared_experts", 0)? {
            0 => None,
            n => Some(GatedMlp { inner: e.product(n, experts.inner, "n_shared_experts")?, ..mlp }),
        };
        Ok(DeepseekMoe { mlp, experts, shared, dense: e.config.u32_or("first_k_dense_replace", 0)? })
    }

    /// Emits layer `l`'s.
    pub(super) fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        if l < self.dense {
            return self.mlp.emit_layer(e, l, x);
        }
        let correction = match self.experts.route.scoring {
            Scoring::Sigmoid => {
                let hf = format!("model.layers.{l}.mlp.gate.e_score_correction_bias");
                Some(e.tensor(&format!("l{l}.correction"), &hf, &[self.experts.count])?)
            }
            Scoring::Softmax | Scoring::SoftmaxTopK => None,
        };
        let routed = self.experts.emit(e, l, x, &ExpertTensorNames::USUAL, correction)?;
        let Some(shared) = &self.shared else { return Ok(routed) };
        let hf = format!("model.layers.{l}.mlp.shared_experts");
        let beside = shared.emit(e, &format!("l{l}.shared"), &hf, x)?;
        e.add(&format!("l{l}.ffn.sum"), routed, beside)
    }
}

/// The choice by corrected sigmoids within the best groups (DeepSeek-V3).
pub(super) fn sigmoid_route(e: &ModelBuilder<'_>) -> Result<Route, ModelError> {
    Ok(Route {
        top_k: e.size("num_experts_per_tok")?,
        scoring: Scoring::Sigmoid,
        normalize: e.config.bool_or("norm_topk_prob", true)?,
        scale: F32(e.config.f64_or("routed_scaling_factor", 1.0)? as f32),
        groups: e.size("n_group")?,
        top_groups: e.size("topk_group")?,
    })
}
