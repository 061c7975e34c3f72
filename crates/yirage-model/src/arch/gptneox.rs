//! GPT-NeoX and Pythia (Black et al., arXiv 2204.06745): both parts of a layer in parallel, part of each head rotates,
//! and queries, keys and values of a head lie together in one tensor.

use super::attention::{AttentionHeads, LayerAttention};
use super::emit::ModelBuilder;
use super::ffn;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::ValueId;
use yirage_ir::expr::Func;
use yirage_ir::op::Map;

struct GptNeoxMlp {
    hidden: u32,
    inner: u32,
    act: Func,
}

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let (hidden, eps) = (h.hidden, e.eps("layer_norm_eps")?);
    let ffn = GptNeoxMlp { hidden, inner: e.size("intermediate_size")?, act: ffn::activation(e)? };
    let bias = e.config.bool_or("attention_bias", true)?;
    let parallel = e.config.bool_or("use_parallel_residual", true)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    let mut x = e.embed("gpt_neox.embed_in.weight", hidden, 1.0)?;
    for l in 0..e.config.layers()? {
        let hf = format!("gpt_neox.layers.{l}");
        let n = e.layer_norm(&format!("l{l}.attn_norm"), &format!("{hf}.input_layernorm"), x, hidden, eps)?;
        let qkv = project(e, l, n, &h, bias)?;
        let a = attend.emit(e, l, &h, qkv)?;
        let a = e.linear(&format!("l{l}.o"), &format!("{hf}.attention.dense"), a, [hidden, h.q()], bias)?;
        let mid = e.add(&format!("l{l}.mid"), x, a)?;
        let from = if parallel { x } else { mid };
        let norm = format!("{hf}.post_attention_layernorm");
        let n = e.layer_norm(&format!("l{l}.ffn_norm"), &norm, from, hidden, eps)?;
        let f = ffn.emit(e, l, n)?;
        x = e.add(&format!("l{l}.res"), mid, f)?;
    }
    let x = e.wanted(x)?;
    let x = e.layer_norm("norm", "gpt_neox.final_layer_norm", x, hidden, eps)?;
    e.logits("embed_out", x, hidden, None)
}

/// Rows of the fused tensor: for each head its query, its key, its value.
fn project(
    e: &mut ModelBuilder<'_>,
    l: u32,
    x: ValueId,
    h: &AttentionHeads,
    bias: bool,
) -> Result<[ValueId; 3], ModelError> {
    let fused = format!("gpt_neox.layers.{l}.attention.query_key_value");
    let (heads, width, hidden, all) = (h.heads, h.width, h.hidden, 3 * h.q());
    let mut one = |part: u32, label: &str| {
        let first = part * width;
        let (shape, strides) = ([heads, width, hidden], [3 * width * hidden, hidden, 1]);
        let w = e.part(&format!("{fused}.weight"), &[all, hidden], first * hidden, &shape, &strides)?;
        let b = match bias {
            true => Some(e.part(&format!("{fused}.bias"), &[all], first, &shape[..2], &[3 * width, 1])?),
            false => None,
        };
        e.project(&format!("l{l}.{label}"), x, [heads * width, hidden], w, b)
    };
    Ok([one(0, "q")?, one(1, "k")?, one(2, "v")?])
}

impl GptNeoxMlp {
    fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let hf = format!("gpt_neox.layers.{l}.mlp");
        let up =
            e.linear(&format!("l{l}.ffn.up"), &format!("{hf}.dense_h_to_4h"), x, [self.inner, self.hidden], true)?;
        let act = e.op(&format!("l{l}.ffn.act"), Map::of(self.act), &[up])?;
        let (down, shape) = (format!("{hf}.dense_4h_to_h"), [self.hidden, self.inner]);
        e.linear(&format!("l{l}.ffn.down"), &down, act, shape, true)
    }
}
