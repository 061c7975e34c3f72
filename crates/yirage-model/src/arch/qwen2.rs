//! Qwen2 and Qwen2.5 (arXiv 2407.10671, 2412.15115): Llama with biases on queries, keys and values, and optionally a
//! sliding window in the upper layers.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let mlp = GatedMlp::read(e, false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let windows = e.config.windows()?;
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, true)?;
            let attend = LayerAttention::full(Some(rotation), h.scale()).within(windows[l as usize]);
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, false)
        },
        &|e, l, x| mlp.emit_layer(e, l, x),
    )
}
