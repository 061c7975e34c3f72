//! BERT (Devlin et al., arXiv 1810.04805): an encoder with learned positions, types of tokens, layer norms behind each
//! part, and biases. As a bare body, or with the head that scores whole sequences.

use super::ModelOutput;
use super::attention::AttentionHeads;
use super::emit::ModelBuilder;
use super::ffn;
use crate::error::ModelError;
use serde_json::Value;
use yirage_ir::expr::Func;
use yirage_ir::op::{Attention, Embed, Map};
use yirage_ir::{F32, ValueId};

/// Labels of a file that names none.
const LABELS: u32 = 2;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let scores = has_head(e)?;
    let h = AttentionHeads::read(e)?;
    let (hidden, eps) = (h.hidden, e.eps("layer_norm_eps")?);
    let (inner, act) = (e.size("intermediate_size")?, ffn::activation(e)?);
    let mut x = embeddings(e, hidden)?;
    x = e.layer_norm("embed_norm", "bert.embeddings.LayerNorm", x, hidden, eps)?;
    for l in 0..e.config.layers()? {
        let (name, hf) = (format!("l{l}"), format!("bert.encoder.layer.{l}"));
        let a = attention(e, &name, &format!("{hf}.attention.self"), &h, x)?;
        let a = e.linear(&format!("{name}.o"), &format!("{hf}.attention.output.dense"), a, [hidden, h.q()], true)?;
        let mid = e.add(&format!("{name}.mid"), x, a)?;
        let norm = format!("{hf}.attention.output.LayerNorm");
        x = e.layer_norm(&format!("{name}.attn_norm"), &norm, mid, hidden, eps)?;
        let f = e.linear(&format!("{name}.ffn.up"), &format!("{hf}.intermediate.dense"), x, [inner, hidden], true)?;
        let f = e.op(&format!("{name}.ffn.act"), Map::of(act), &[f])?;
        let f = e.linear(&format!("{name}.ffn.down"), &format!("{hf}.output.dense"), f, [hidden, inner], true)?;
        let res = e.add(&format!("{name}.res"), x, f)?;
        x = e.layer_norm(&format!("{name}.ffn_norm"), &format!("{hf}.output.LayerNorm"), res, hidden, eps)?;
    }
    if scores {
        return head(e, x, hidden);
    }
    // Many files keep what training put behind the first token.
    e.pass_over("bert.pooler.dense.weight");
    e.pass_over("bert.pooler.dense.bias");
    e.output(x, ModelOutput::Hidden { width: hidden });
    Ok(())
}

/// Whether the model scores sequences.
fn has_head(e: &ModelBuilder<'_>) -> Result<bool, ModelError> {
    match e.config.architectures()[..] {
        [] | ["BertModel"] => Ok(false),
        ["BertForSequenceClassification"] => Ok(true),
        ref other => Err(ModelError::Unsupported {
            what: format!("the head of {}", other.join(", ")),
            why: format!(
                "{}: architectures names it; BertModel and BertForSequenceClassification are known",
                e.config.file()
            ),
        }),
    }
}

/// The sum of what token, type and position say.
fn embeddings(e: &mut ModelBuilder<'_>, hidden: u32) -> Result<ValueId, ModelError> {
    let (positions, types) = (e.size("max_position_embeddings")?, e.size("type_vocab_size")?);
    let tokens = e.embed("bert.embeddings.word_embeddings.weight", hidden, 1.0)?;
    let table = e.tensor("types.w", "bert.embeddings.token_type_embeddings.weight", &[types, hidden])?;
    let of_tokens = e.token_types(types)?;
    let of_type = e.op("type", Embed { scale: F32(1.0) }, &[table, of_tokens])?;
    let typed = e.add("typed", tokens, of_type)?;
    let table = e.tensor("positions.w", "bert.embeddings.position_embeddings.weight", &[positions, hidden])?;
    let at = e.op("position", Embed { scale: F32(1.0) }, &[table, e.inputs.positions])?;
    e.add("positioned", typed, at)
}

/// Attention to all of the sequence.
fn attention(
    e: &mut ModelBuilder<'_>,
    name: &str,
    hf: &str,
    h: &AttentionHeads,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    let mut one = |part: &str, label: &str, n: u32| {
        e.linear(&format!("{name}.{label}"), &format!("{hf}.{part}"), x, [n, h.hidden], true)
    };
    let (q, k, v) = (one("query", "q", h.q())?, one("key", "k", h.k())?, one("value", "v", h.v())?);
    let op = Attention {
        heads: h.heads,
        kv_heads: h.kv_heads,
        k_width: h.width,
        v_width: h.v_width,
        scale: F32(h.scale()),
        softcap: F32(0.0),
        window: 0,
        causal: false,
        cached: false,
        v_in_k: false,
    };
    e.op(&format!("{name}.attn"), op, &[q, k, v, e.inputs.positions, e.inputs.seqs])
}

/// Scores by the first tokens of sequences.
fn head(e: &mut ModelBuilder<'_>, x: ValueId, hidden: u32) -> Result<(), ModelError> {
    let labels = match e.config.get("id2label") {
        None => LABELS,
        Some(Value::Object(names)) if !names.is_empty() => u32::try_from(names.len()).unwrap_or(u32::MAX),
        Some(_) => return Err(e.config.invalid("id2label", "an object with a name for each label")),
    };
    let first = e.wanted(x)?;
    let pooled = e.linear("pooler", "bert.pooler.dense", first, [hidden, hidden], true)?;
    let pooled = e.op("pooler.act", Map::of(Func::Tanh), &[pooled])?;
    let scores = e.linear("scores", "classifier", pooled, [labels, hidden], true)?;
    e.output(scores, ModelOutput::Scores { labels });
    Ok(())
}
