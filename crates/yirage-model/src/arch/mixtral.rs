//! Mixtral (Jiang et al., arXiv 2401.04088): Mistral with experts, whose weights are normalised over the chosen.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::F32;
use yirage_ir::op::{Route, Scoring};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let (top_k, scoring) = (e.size("num_experts_per_tok")?, Scoring::Softmax);
    let route = Route { top_k, scoring, normalize: true, scale: F32(1.0), groups: 1, top_groups: 1 };
    let experts = MoeLayer::read(e, "intermediate_size", route)?;
    let names = ExpertTensorNames::Separate {
        router: "block_sparse_moe.gate",
        experts: "block_sparse_moe.experts",
        parts: ["w1", "w3", "w2"],
    };
    // GGUF files call this family `llama` and hold q and k as that family's do.
    let rotation = e.rotation(LayerType::Full, h.width, e.is_gguf())?;
    let windows = e.config.windows()?;
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, false)?;
            let attend = LayerAttention::full(Some(rotation), h.scale()).within(windows[l as usize]);
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, false)
        },
        &|e, l, x| experts.emit(e, l, x, &names, None),
    )
}
