//! Phi-3 and Phi-4 (Abdin et al., arXiv 2404.14219): Llama with fused tensors, which are read as slices of rows.

use super::attention::{Attend, Heads};
use super::decoder::Decoder;
use super::emit::Emit;
use super::ffn::Gated;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::ValueId;

pub(super) fn emit(e: &mut Emit<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = Heads::read(e)?;
    let mlp = Gated::read(e, false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let windows = e.config.windows()?;
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = project(e, l, x, &h)?;
            let attend = Attend::full(Some(rotation), h.scale()).within(windows[l as usize]);
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, false)
        },
        &|e, l, x| feed_forward(e, l, x, &mlp),
    )
}

fn project(e: &mut Emit<'_>, l: u32, x: ValueId, h: &Heads) -> Result<[ValueId; 3], ModelError> {
    let fused = format!("model.layers.{l}.self_attn.qkv_proj.weight");
    let (q, k, v) = (h.q(), h.k(), h.v());
    let mut one = |part: &str, first: u32, n: u32| {
        let rows = e.rows_of(&fused, &[q + k + v, h.hidden], first, n)?;
        e.project(&format!("l{l}.{part}"), x, [n, h.hidden], rows, None)
    };
    Ok([one("q", 0, q)?, one("k", q, k)?, one("v", q + k, v)?])
}

fn feed_forward(e: &mut Emit<'_>, l: u32, x: ValueId, mlp: &Gated) -> Result<ValueId, ModelError> {
    let fused = format!("model.layers.{l}.mlp.gate_up_proj.weight");
    let mut half = |part: &str, first: u32| {
        let rows = e.rows_of(&fused, &[2 * mlp.inner, mlp.hidden], first, mlp.inner)?;
        e.project(&format!("l{l}.ffn.{part}"), x, [mlp.inner, mlp.hidden], rows, None)
    };
    let (gate, up) = (half("gate", 0)?, half("up", mlp.inner)?);
    mlp.finish(e, &format!("l{l}.ffn"), &format!("model.layers.{l}.mlp"), gate, up)
}
