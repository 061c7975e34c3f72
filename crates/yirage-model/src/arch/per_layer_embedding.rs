//! Embeddings of a token for each layer (Gemma 3n and 4): one more table, of which every layer reads columns of its own, and
//! a projection of the usual embedding, joined. Behind a layer's feed-forward part they gate what is added to its rows.
//!
//! It does not know what else a layer does.

use super::emit::ModelBuilder;
use crate::error::ModelError;
use yirage_ir::expr::{Expr, Func};
use yirage_ir::op::{Cut, Embed, Map, RmsNorm, View, ViewForm};
use yirage_ir::{Dim, F32, Sym, ValueId};

/// The embeddings of all layers, one behind the other: f32 `[Tokens, layers * width]`.
pub(super) struct PerLayerEmbedding {
    rows: ValueId,
    width: u32,
    hidden: u32,
    gate: Func,
}

impl PerLayerEmbedding {
    /// Emits them, from the embedding `x` of the tokens; none where the configuration gives them no width. `norm` is that of
    /// other rows of the model.
    pub(super) fn emit(
        e: &mut ModelBuilder<'_>,
        x: ValueId,
        norm: &RmsNorm,
        gate: Func,
    ) -> Result<Option<PerLayerEmbedding>, ModelError> {
        if e.config.u32_or("hidden_size_per_layer_input", 0)? == 0 {
            return Ok(None);
        }
        let (width, hidden) = (e.size("hidden_size_per_layer_input")?, e.size("hidden_size")?);
        let all = e.product(e.config.layers()?, width, "num_hidden_layers times hidden_size_per_layer_input")?;
        let root = |scale: u32| f64::from(scale).sqrt();
        let vocab = e.size("vocab_size_per_layer_input")?;
        let ids = ids(e, vocab)?;
        let table = e.tensor("layers.embed.w", "model.embed_tokens_per_layer.weight", &[vocab, all])?;
        let of_tokens = e.op("layers.embed", Embed { scale: F32(root(width) as f32) }, &[table, ids])?;
        let projected = e.linear("layers.project", "model.per_layer_model_projection", x, [all, hidden], false)?;
        let scaled = e.scale("layers.scaled", projected, (1.0 / root(hidden)) as f32)?;
        let norm = RmsNorm { width, ..norm.clone() };
        let normed = e.rms_norm("layers.norm", "model.per_layer_projection_norm", scaled, &norm)?;
        let joined = e.add("layers.joined", normed, of_tokens)?;
        let rows = e.scale("layers.inputs", joined, (1.0 / root(2)) as f32)?;
        Ok(Some(PerLayerEmbedding { rows, width, hidden, gate }))
    }

    /// What layer `l` adds to its rows `x`, still to be normalised.
    pub(super) fn of_layer(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (name, hf) = (format!("l{l}.own"), format!("model.layers.{l}"));
        let columns = Cut { start: l * self.width, step: 1, size: Dim::Const(self.width) };
        let form = ViewForm::Slice(vec![Cut::whole(Dim::Sym(Sym::Tokens)), columns]);
        let own = e.op(&format!("{name}.input"), View { form }, &[self.rows])?;
        let shape = [self.width, self.hidden];
        let gate = e.linear(&format!("{name}.gate"), &format!("{hf}.per_layer_input_gate"), x, shape, false)?;
        let gated = e.op(&format!("{name}.gated"), Map::gated(self.gate), &[gate, own])?;
        let shape = [self.hidden, self.width];
        e.linear(&format!("{name}.project"), &format!("{hf}.per_layer_projection"), gated, shape, false)
    }
}

/// The rows of a table of so many that tokens read: the first one where it has none of theirs, as the reference code does.
fn ids(e: &mut ModelBuilder<'_>, vocab: u32) -> Result<ValueId, ModelError> {
    let all = e.ids()?;
    if vocab >= e.size("vocab_size")? {
        return Ok(all);
    }
    // At most 2^24, and so an i32.
    let is_there = Expr::call(Func::Less, &[Expr::input(0), Expr::constant(vocab as i32)]);
    let expr = Expr::call(Func::Select, &[is_there, Expr::input(0), Expr::constant(0i32)]);
    e.op("layers.ids", Map { expr }, &[all])
}
