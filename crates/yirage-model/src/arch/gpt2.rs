//! GPT-2 (Radford et al., 2019): learned positions, layer norms, biases, matrices stored `[in, out]`.

use super::attention::{AttentionHeads, LayerAttention};
use super::emit::ModelBuilder;
use super::ffn;
use crate::error::ModelError;
use crate::weights::WeightView;
use yirage_ir::op::{Embed, Map};
use yirage_ir::{F32, ValueId};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let (hidden, eps) = (h.hidden, e.eps("layer_norm_eps")?);
    let (inner, act) = (e.size("intermediate_size")?, ffn::activation(e)?);
    let scaled = e.config.bool_or("scale_attn_weights", true)?;
    let by_layer = e.config.bool_or("scale_attn_by_inverse_layer_idx", false)?;
    let mut x = positioned(e, hidden)?;
    for l in 0..e.config.layers()? {
        let (name, hf) = (format!("l{l}"), format!("transformer.h.{l}"));
        let n = e.layer_norm(&format!("{name}.attn_norm"), &format!("{hf}.ln_1"), x, hidden, eps)?;
        let mut qkv = [n; 3];
        for (part, label) in ["q", "k", "v"].into_iter().enumerate() {
            let fused = format!("{hf}.attn.c_attn");
            let columns = [part as u32 * hidden, hidden, 3 * hidden];
            qkv[part] = transposed(e, &format!("{name}.{label}"), &fused, n, hidden, columns)?;
        }
        let scale = if scaled { h.scale() } else { 1.0 } / if by_layer { (l + 1) as f32 } else { 1.0 };
        let a = LayerAttention::full(None, scale).emit(e, l, &h, qkv)?;
        let a = transposed(e, &format!("{name}.o"), &format!("{hf}.attn.c_proj"), a, hidden, [0, hidden, hidden])?;
        x = e.add(&format!("{name}.mid"), x, a)?;
        let n = e.layer_norm(&format!("{name}.ffn_norm"), &format!("{hf}.ln_2"), x, hidden, eps)?;
        let up = format!("{hf}.mlp.c_fc");
        let f = transposed(e, &format!("{name}.ffn.up"), &up, n, hidden, [0, inner, inner])?;
        let f = e.op(&format!("{name}.ffn.act"), Map::of(act), &[f])?;
        let down = format!("{hf}.mlp.c_proj");
        let f = transposed(e, &format!("{name}.ffn.down"), &down, f, inner, [0, hidden, hidden])?;
        x = e.add(&format!("{name}.res"), x, f)?;
    }
    let x = e.wanted(x)?;
    let x = e.layer_norm("norm", "transformer.ln_f", x, hidden, eps)?;
    e.logits("lm_head", x, hidden, None)
}

/// Token plus position embeddings.
fn positioned(e: &mut ModelBuilder<'_>, hidden: u32) -> Result<ValueId, ModelError> {
    let tokens = e.embed("transformer.wte.weight", hidden, 1.0)?;
    let positions = e.size("max_position_embeddings")?;
    let table = e.tensor("positions.w", "transformer.wpe.weight", &[positions, hidden])?;
    let at = e.op("position", Embed { scale: F32(1.0) }, &[table, e.inputs.positions])?;
    e.add("positioned", tokens, at)
}

/// A projection by columns `first..first + n` of a matrix stored `[k, all]`.
fn transposed(
    e: &mut ModelBuilder<'_>,
    name: &str,
    hf: &str,
    x: ValueId,
    k: u32,
    [first, n, all]: [u32; 3],
) -> Result<ValueId, ModelError> {
    let w: WeightView = e.part(&format!("{hf}.weight"), &[k, all], first, &[n, k], &[1, all])?;
    let b = e.rows_of(&format!("{hf}.bias"), &[all], first, n)?;
    e.project(name, x, [n, k], w, Some(b))
}
