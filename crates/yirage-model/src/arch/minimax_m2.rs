//! MiniMax M2 (2025): grouped heads of which a part rotates, norms of whole queries and keys, and experts by corrected
//! sigmoids in every layer.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::F32;
use yirage_ir::op::{RmsNorm, Route, Scoring};

const NAMES: ExpertTensorNames = ExpertTensorNames::Separate {
    router: "block_sparse_moe.gate",
    experts: "block_sparse_moe.experts",
    parts: ["w1", "w3", "w2"],
};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let route = Route {
        top_k: e.size("num_experts_per_tok")?,
        scoring: Scoring::Sigmoid,
        normalize: true,
        scale: F32(1.0),
        groups: 1,
        top_groups: 1,
    };
    let experts = MoeLayer::read(e, "intermediate_size", route)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    let decoder = Decoder::read(e)?;
    let norms = [h.q(), h.k()].map(|width| RmsNorm { width, ..decoder.norm.clone() });
    decoder.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, false)?;
            let qkv = h.normalise(e, l, qkv, [&norms[0], &norms[1]])?;
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, false)
        },
        &|e, l, x| {
            let hf = format!("model.layers.{l}.block_sparse_moe.e_score_correction_bias");
            let correction = e.tensor(&format!("l{l}.correction"), &hf, &[experts.count])?;
            experts.emit(e, l, x, &NAMES, Some(correction))
        },
    )
}
