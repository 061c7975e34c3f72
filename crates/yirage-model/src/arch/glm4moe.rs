//! GLM-4.5 (arXiv 2508.06471): grouped heads of which a part rotates, optional norms of each, and experts as DeepSeek-V3
//! has them.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::deepseek_moe::{self, DeepseekMoe};
use super::emit::ModelBuilder;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::op::RmsNorm;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    if e.is_gguf() {
        // There the norm before the feed-forward part has this name.
        e.with_post_norms();
    }
    let h = AttentionHeads::read(e)?;
    let moe = DeepseekMoe::read(e, deepseek_moe::sigmoid_route(e)?)?;
    let bias = e.config.bool_or("attention_bias", false)?;
    let norms = e.config.bool_or("use_qk_norm", false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    let decoder = Decoder::read(e)?;
    let norm = RmsNorm { width: h.width, ..decoder.norm.clone() };
    decoder.emit(
        e,
        &|e, l, x| {
            let mut qkv = h.project(e, l, x, bias)?;
            if norms {
                qkv = h.normalise(e, l, qkv, [&norm, &norm])?;
            }
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, false)
        },
        &|e, l, x| moe.emit(e, l, x),
    )
}
