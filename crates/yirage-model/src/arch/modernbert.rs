//! ModernBERT (Warner et al., arXiv 2412.13663): an encoder with rotated positions, layers of which most see a window to both
//! sides, gated feed-forward parts, and norms in front of each part, without biases. As a bare body, or with the head that
//! scores whole sequences by their first tokens.

use super::ModelOutput;
use super::attention::AttentionHeads;
use super::emit::{ModelBuilder, Rotation};
use super::{ffn, scoring};
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::ValueId;
use yirage_ir::expr::Func;
use yirage_ir::op::Map;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let scores = scoring::scores_sequences(e, "ModernBert")?;
    let model = ModernBert::read(e)?;
    let hidden = model.heads.hidden;
    let x = e.embed("model.embeddings.tok_embeddings.weight", hidden, 1.0)?;
    let mut x = model.norm(e, "embed_norm", "model.embeddings.norm", x)?;
    for (l, layer) in (0..).zip(&model.layers) {
        let (name, hf) = (format!("l{l}"), format!("model.layers.{l}"));
        // What the first layer reads has just been normalised.
        let n = match l {
            0 => x,
            _ => model.norm(e, &format!("{name}.attn_norm"), &format!("{hf}.attn_norm"), x)?,
        };
        let a = model.attention(e, &name, &hf, layer, n)?;
        x = e.add(&format!("{name}.mid"), x, a)?;
        let n = model.norm(e, &format!("{name}.ffn_norm"), &format!("{hf}.mlp_norm"), x)?;
        let f = model.feed_forward(e, &name, &hf, n)?;
        x = e.add(&format!("{name}.res"), x, f)?;
    }
    x = model.norm(e, "norm", "model.final_norm", x)?;
    if scores {
        return model.scores(e, x);
    }
    e.output(x, ModelOutput::Hidden { width: hidden });
    Ok(())
}

/// What is read of the configuration.
struct ModernBert {
    heads: AttentionHeads,
    layers: Vec<ModernBertLayer>,
    inner: u32,
    act: Func,
    eps: f32,
    attention_bias: bool,
    mlp_bias: bool,
}

/// What a layer sees, and how it rotates.
struct ModernBertLayer {
    window: Option<u32>,
    rotation: Rotation,
}

impl ModernBert {
    fn read(e: &mut ModelBuilder<'_>) -> Result<ModernBert, ModelError> {
        let heads = AttentionHeads::read(e)?;
        if heads.kv_heads != heads.heads || heads.q() != heads.hidden {
            return Err(e.config.invalid("num_attention_heads", "a divisor of hidden_size, and as many key heads"));
        }
        if e.config.bool_or("norm_bias", false)? {
            return Err(e.config.invalid("norm_bias", "false"));
        }
        let inner = e.size("intermediate_size")?;
        e.product(inner, 2, "intermediate_size")?;
        e.product(heads.hidden, 3, "hidden_size")?;
        let mut layers = Vec::new();
        for window in e.config.windows()? {
            let of = if window.is_some() { LayerType::Sliding } else { LayerType::Full };
            layers.push(ModernBertLayer { window, rotation: e.rotation(of, heads.width, false)? });
        }
        Ok(ModernBert {
            heads,
            layers,
            inner,
            act: ffn::activation(e)?,
            eps: e.eps("norm_eps")?,
            attention_bias: e.config.bool_or("attention_bias", false)?,
            mlp_bias: e.config.bool_or("mlp_bias", false)?,
        })
    }

    fn norm(&self, e: &mut ModelBuilder<'_>, name: &str, hf: &str, x: ValueId) -> Result<ValueId, ModelError> {
        e.layer_norm_unbiased(name, hf, x, self.heads.hidden, self.eps)
    }

    /// Attention to both sides, within the layer's window.
    fn attention(
        &self,
        e: &mut ModelBuilder<'_>,
        name: &str,
        hf: &str,
        layer: &ModernBertLayer,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let h = &self.heads;
        let mut part = |part: &str, at: u32| {
            let fused = format!("{hf}.attn.Wqkv");
            self.rows(e, &format!("{name}.{part}"), &fused, [3, h.hidden, h.hidden], at, self.attention_bias, x)
        };
        let (q, k, v) = (part("q", 0)?, part("k", 1)?, part("v", 2)?);
        let q = e.rotate(&format!("{name}.q.rope"), q, h.width, layer.rotation)?;
        let k = e.rotate(&format!("{name}.k.rope"), k, h.width, layer.rotation)?;
        let a = h.attend_both_ways(e, &format!("{name}.attn"), [q, k, v], layer.window)?;
        let shape = [h.hidden, h.hidden];
        e.linear(&format!("{name}.o"), &format!("{hf}.attn.Wo"), a, shape, self.attention_bias)
    }

    fn feed_forward(&self, e: &mut ModelBuilder<'_>, name: &str, hf: &str, x: ValueId) -> Result<ValueId, ModelError> {
        let (hidden, fused) = (self.heads.hidden, format!("{hf}.mlp.Wi"));
        let mut half = |part: &str, at: u32| {
            self.rows(e, &format!("{name}.ffn.{part}"), &fused, [2, self.inner, hidden], at, self.mlp_bias, x)
        };
        let (gate, up) = (half("gate", 0)?, half("up", 1)?);
        let act = e.op(&format!("{name}.ffn.act"), Map::gated(self.act), &[gate, up])?;
        e.linear(&format!("{name}.ffn.down"), &format!("{hf}.mlp.Wo"), act, [hidden, self.inner], self.mlp_bias)
    }

    /// The product of part `at` of a tensor with `count` parts of `rows` rows of `width`.
    #[expect(clippy::too_many_arguments, reason = "a name on both sides, a part of a tensor, and what it meets")]
    fn rows(
        &self,
        e: &mut ModelBuilder<'_>,
        name: &str,
        hf: &str,
        [count, rows, width]: [u32; 3],
        at: u32,
        bias: bool,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let w = e.rows_of(&format!("{hf}.weight"), &[count * rows, width], at * rows, rows)?;
        let b = if bias { Some(e.rows_of(&format!("{hf}.bias"), &[count * rows], at * rows, rows)?) } else { None };
        e.project(name, x, [rows, width], w, b)
    }

    /// Scores by the first tokens of sequences.
    fn scores(&self, e: &mut ModelBuilder<'_>, x: ValueId) -> Result<(), ModelError> {
        match e.config.opt_str("classifier_pooling")?.unwrap_or("cls") {
            "cls" => {}
            other => {
                return Err(ModelError::Unsupported {
                    what: format!("scores by the pooling {other:?}"),
                    why: format!("{}: classifier_pooling names it; cls is known", e.config.file()),
                });
            }
        }
        let labels = scoring::labels(e)?;
        let act =
            ffn::function(e, "classifier_activation", e.config.opt_str("classifier_activation")?.unwrap_or("gelu"))?;
        let (hidden, bias) = (self.heads.hidden, e.config.bool_or("classifier_bias", false)?);
        let first = e.wanted(x)?;
        let head = e.linear("head", "head.dense", first, [hidden, hidden], bias)?;
        let head = e.op("head.act", Map::of(act), &[head])?;
        let head = self.norm(e, "head.norm", "head.norm", head)?;
        let scores = e.linear("scores", "classifier", head, [labels, hidden], true)?;
        e.output(scores, ModelOutput::Scores { labels });
        Ok(())
    }
}
