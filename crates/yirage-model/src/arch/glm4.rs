//! GLM-4 of April 2025 and GLM-Z1: as the first GLM-4, with norms of what attention and the feed-forward part give.

use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::glm::GlmSublayers;
use crate::error::ModelError;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    let parts = GlmSublayers::read(e)?;
    let decoder = Decoder::read(e)?;
    let norm = |e: &mut ModelBuilder<'_>, l: u32, name: &str, hf: &str, x| {
        e.rms_norm(&format!("l{l}.{name}"), &format!("model.layers.{l}.{hf}"), x, &decoder.norm)
    };
    decoder.emit(
        e,
        &|e, l, x| {
            let a = parts.attention(e, l, x)?;
            norm(e, l, "attn_post_norm", "post_self_attn_layernorm", a)
        },
        &|e, l, x| {
            let f = parts.mlp.emit_fused_layer(e, l, x)?;
            norm(e, l, "ffn_post_norm", "post_mlp_layernorm", f)
        },
    )
}
