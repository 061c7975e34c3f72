//! ERNIE 4.5, dense (Baidu, 2025): Llama whose neighbouring elements rotate, with biases everywhere or nowhere.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let bias = e.config.bool_or("use_bias", false)?;
    let mlp = GatedMlp::read(e, bias)?;
    let rotation = e.rotation(LayerType::Full, h.width, true)?;
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
