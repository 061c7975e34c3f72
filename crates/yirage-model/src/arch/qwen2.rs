//! Qwen2 and Qwen2.5 (arXiv 2407.10671, 2412.15115): Llama with biases on queries, keys and values, and optionally a
//! sliding window in the upper layers.

use super::attention::{Attend, Heads};
use super::decoder::Decoder;
use super::emit::Emit;
use super::ffn::Gated;
use crate::config::LayerType;
use crate::error::ModelError;

pub(super) fn emit(e: &mut Emit<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = Heads::read(e)?;
    let mlp = Gated::read(e, false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let windows = e.config.windows()?;
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, true)?;
            let attend = Attend::full(Some(rotation), h.scale()).within(windows[l as usize]);
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, false)
        },
        &|e, l, x| mlp.emit_layer(e, l, x),
    )
}
