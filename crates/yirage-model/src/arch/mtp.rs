//! Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): the layer behind a model's last, which predicts
//! one token further, as a model of its own.
//!
//! At position i it reads the token of position i + 1 and the model's hidden state of position i after its final norm:
//! both normalised, side by side and projected to the width of one. A layer as the model's follows, with a cache of its
//! own, and a norm and a head. What that norm reads takes the place of the model's state for the position behind.
//!
//! Embedding and head are the model's where the file has none for the layer, or the same bytes once more.

use super::Model;
use super::decoder::{Decoder, SublayerFn};
use super::emit::ModelBuilder;
use super::unused_tensors;
use crate::checkpoint::Checkpoint;
use crate::config::RawConfig;
use crate::error::ModelError;
use yirage_ir::op::ConcatHeads;
use yirage_ir::{Dim, Sym, ValueId};

/// The step input of an MTP head: of each token the hidden state of the position before it.
pub const PREVIOUS_HIDDEN: &str = "previous_hidden";

/// The layer of a checkpoint that predicts one token further; none where the file has no such layer.
///
/// # Errors
/// A configuration that does not say how many layers the model has.
pub fn mtp_layer(checkpoint: &Checkpoint, config: &RawConfig) -> Result<Option<u32>, ModelError> {
    Ok(unused_tensors::guessing_layers(checkpoint, config.layers()?).into_iter().min())
}

impl Model {
    /// The width of the hidden states that an MTP head reads; none for other models.
    pub fn previous_hidden(&self) -> Option<u32> {
        let input = self.graph.find(PREVIOUS_HIDDEN)?;
        match self.graph.ty(input).shape[..] {
            [_, Dim::Const(width)] => Some(width),
            _ => None,
        }
    }
}

/// Why there is no MTP head to build.
pub(super) fn no_head(config: &RawConfig) -> ModelError {
    ModelError::Unsupported {
        what: "multi-token prediction".into(),
        why: format!(
            "{}: the checkpoint has no layer that predicts further tokens (one behind its last, with `eh_proj`)",
            config.file()
        ),
    }
}

impl Decoder {
    /// Emits the MTP head that layer `l` is, around the two parts of a layer.
    pub(super) fn emit_mtp_head(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        attention: SublayerFn<'_>,
        feed_forward: SublayerFn<'_>,
    ) -> Result<(), ModelError> {
        let hf = format!("model.layers.{l}");
        let own = format!("{hf}.embed_tokens.weight");
        let embedded = if has_own(e, &own, "model.embed_tokens.weight") {
            e.embed_from("mtp.embed.w", &own, self.hidden, self.embedding_scale)?
        } else {
            e.embed("model.embed_tokens.weight", self.hidden, self.embedding_scale)?
        };
        let previous = e.float_input(PREVIOUS_HIDDEN, [Dim::Sym(Sym::Tokens), Dim::Const(self.hidden)])?;
        let token = e.rms_norm("mtp.enorm", &format!("{hf}.enorm"), embedded, &self.norm)?;
        let state = e.rms_norm("mtp.hnorm", &format!("{hf}.hnorm"), previous, &self.norm)?;
        let both = e.op("mtp.both", ConcatHeads { groups: 1 }, &[token, state])?;
        let width = e.product(2, self.hidden, "hidden_size")?;
        let x = e.linear("mtp.eh_proj", &format!("{hf}.eh_proj"), both, [self.hidden, width], false)?;
        let x = self.layer(e, l, x, attention, feed_forward)?;
        let wanted = e.wanted(x)?;
        let x = e.rms_norm("mtp.norm", &format!("{hf}.shared_head.norm"), wanted, &self.norm)?;
        let w = self.mtp_output_head(e, &format!("{hf}.shared_head.head.weight"))?;
        e.logits_by(w, x, self.after_logits.clone())?;
        e.mtp_output(wanted);
        Ok(())
    }

    /// The matrix that makes the logits of an MTP head: `own` or the model's.
    fn mtp_output_head(&self, e: &mut ModelBuilder<'_>, own: &str) -> Result<ValueId, ModelError> {
        let vocab = e.size("vocab_size")?;
        if has_own(e, own, "lm_head.weight") {
            return e.tensor("mtp.head.w", own, &[vocab, self.hidden]);
        }
        if e.has("lm_head.weight") {
            return e.tensor("head.w", "lm_head.weight", &[vocab, self.hidden]);
        }
        e.tensor("embed.w", "model.embed_tokens.weight", &[vocab, self.hidden])
    }
}

/// Whether the file has the tensor `own`, and not the model's tensor `of` once more, of which one is enough.
fn has_own(e: &mut ModelBuilder<'_>, own: &str, of: &str) -> bool {
    let tensor = |hf: &str| e.checkpoint.tensor(&e.stored_name(hf));
    let (Some(stored), of) = (tensor(own), tensor(of)) else { return false };
    let copied = of.is_some_and(|of| e.checkpoint.is_copy(stored, of));
    if copied {
        e.pass_over(own);
    }
    !copied
}
