//! BERT (Devlin et al., arXiv 1810.04805): an encoder with learned positions, types of tokens, layer norms behind each
//! part, and biases. As a bare body, or with the head that scores whole sequences. RoBERTa (Liu et al., arXiv 1907.11692) and
//! XLM-RoBERTa (Conneau et al., arXiv 1911.02116) are the same body with another head, and positions counted from behind the
//! number of the padding token.

use super::ModelOutput;
use super::attention::AttentionHeads;
use super::emit::ModelBuilder;
use super::{ffn, scoring};
use crate::error::ModelError;
use yirage_ir::expr::Func;
use yirage_ir::op::{Embed, Map};
use yirage_ir::{F32, ValueId};

/// What the families call their parts, and how they differ.
struct BertFamily {
    /// What the names of tensors begin with.
    root: &'static str,
    /// What the names of architectures begin with.
    prefix: &'static str,
    head: ScoringHead,
    /// Rows of the table of positions in front of that of the first position.
    unused_positions: u32,
}

/// What makes scores of the first token's row.
enum ScoringHead {
    /// A pooler that the body has, and a layer.
    Pooled,
    /// Two layers of the head.
    Own,
}

/// BERT.
pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    let family = BertFamily { root: "bert", prefix: "Bert", head: ScoringHead::Pooled, unused_positions: 0 };
    family.emit(e)
}

/// RoBERTa.
pub(super) fn emit_roberta(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    roberta(e, "Roberta")?.emit(e)
}

/// XLM-RoBERTa.
pub(super) fn emit_xlm_roberta(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    roberta(e, "XLMRoberta")?.emit(e)
}

fn roberta(e: &ModelBuilder<'_>, prefix: &'static str) -> Result<BertFamily, ModelError> {
    let unused_positions = e.config.positions_before_first()?;
    Ok(BertFamily { root: "roberta", prefix, head: ScoringHead::Own, unused_positions })
}

impl BertFamily {
    fn emit(&self, e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
        e.plain_storage()?;
        let scores = scoring::scores_sequences(e, self.prefix)?;
        let h = AttentionHeads::read(e)?;
        let (root, hidden, eps) = (self.root, h.hidden, e.eps("layer_norm_eps")?);
        let (inner, act) = (e.size("intermediate_size")?, ffn::activation(e)?);
        let mut x = self.embeddings(e, hidden)?;
        x = e.layer_norm("embed_norm", &format!("{root}.embeddings.LayerNorm"), x, hidden, eps)?;
        for l in 0..e.config.layers()? {
            let (name, hf) = (format!("l{l}"), format!("{root}.encoder.layer.{l}"));
            let a = attention(e, &name, &format!("{hf}.attention.self"), &h, x)?;
            let a =
                e.linear(&format!("{name}.o"), &format!("{hf}.attention.output.dense"), a, [hidden, h.q()], true)?;
            let mid = e.add(&format!("{name}.mid"), x, a)?;
            let norm = format!("{hf}.attention.output.LayerNorm");
            x = e.layer_norm(&format!("{name}.attn_norm"), &norm, mid, hidden, eps)?;
            let f =
                e.linear(&format!("{name}.ffn.up"), &format!("{hf}.intermediate.dense"), x, [inner, hidden], true)?;
            let f = e.op(&format!("{name}.ffn.act"), Map::of(act), &[f])?;
            let f = e.linear(&format!("{name}.ffn.down"), &format!("{hf}.output.dense"), f, [hidden, inner], true)?;
            let res = e.add(&format!("{name}.res"), x, f)?;
            x = e.layer_norm(&format!("{name}.ffn_norm"), &format!("{hf}.output.LayerNorm"), res, hidden, eps)?;
        }
        if scores {
            return self.scores(e, x, hidden);
        }
        // Many files keep what training put behind the first token.
        e.pass_over(&format!("{root}.pooler.dense.weight"));
        e.pass_over(&format!("{root}.pooler.dense.bias"));
        e.output(x, ModelOutput::Hidden { width: hidden });
        Ok(())
    }

    /// The sum of what token, type and position say.
    fn embeddings(&self, e: &mut ModelBuilder<'_>, hidden: u32) -> Result<ValueId, ModelError> {
        let (positions, types) = (e.size("max_position_embeddings")?, e.size("type_vocab_size")?);
        let root = format!("{}.embeddings", self.root);
        let tokens = e.embed(&format!("{root}.word_embeddings.weight"), hidden, 1.0)?;
        let table = e.tensor("types.w", &format!("{root}.token_type_embeddings.weight"), &[types, hidden])?;
        let of_tokens = e.token_types(types)?;
        let of_type = e.op("type", Embed { scale: F32(1.0) }, &[table, of_tokens])?;
        let typed = e.add("typed", tokens, of_type)?;
        let (name, all) =
            (format!("{root}.position_embeddings.weight"), self.unused_positions.saturating_add(positions));
        let rows = e.rows_of(&name, &[all, hidden], self.unused_positions, positions)?;
        let table = e.weight("positions.w", &[positions, hidden], vec![rows])?;
        let at = e.op("position", Embed { scale: F32(1.0) }, &[table, e.inputs.positions])?;
        e.add("positioned", typed, at)
    }

    /// Scores by the first tokens of sequences.
    fn scores(&self, e: &mut ModelBuilder<'_>, x: ValueId, hidden: u32) -> Result<(), ModelError> {
        let labels = scoring::labels(e)?;
        let (pooler, layer) = match self.head {
            ScoringHead::Pooled => (format!("{}.pooler.dense", self.root), "classifier"),
            ScoringHead::Own => ("classifier.dense".to_owned(), "classifier.out_proj"),
        };
        let first = e.wanted(x)?;
        let pooled = e.linear("pooler", &pooler, first, [hidden, hidden], true)?;
        let pooled = e.op("pooler.act", Map::of(Func::Tanh), &[pooled])?;
        let scores = e.linear("scores", layer, pooled, [labels, hidden], true)?;
        e.output(scores, ModelOutput::Scores { labels });
        Ok(())
    }
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
    h.attend_both_ways(e, &format!("{name}.attn"), [q, k, v], None)
}
