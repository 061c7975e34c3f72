//! Llama (Touvron et al., arXiv 2302.13971; Llama 3, arXiv 2407.21783): grouped heads, SwiGLU, rotary embedding with
//! any scaling.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let bias = e.config.bool_or("attention_bias", false)?;
    let mlp = GatedMlp::read(e, e.config.bool_or("mlp_bias", false)?)?;
    // GGUF files hold the rows of q and k in the order of neighbouring pairs.
    let rotation = e.rotation(LayerType::Full, h.width, e.is_gguf())?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, bias)?;
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, bias)
        },
        &|e, l, x| mlp.emit_layer(e, l, x),
    )
}
