//! The frames that most decoders share: what a layer's two parts read and how they are added.

use super::emit::ModelBuilder;
use crate::error::ModelError;
use yirage_ir::op::{Map, RmsNorm};
use yirage_ir::{F32, ValueId};

/// What is emitted of a part of layer `l` from what it reads.
pub(super) type SublayerFn<'p> = &'p dyn Fn(&mut ModelBuilder<'_>, u32, ValueId) -> Result<ValueId, ModelError>;

/// A decoder with RMS norms.
pub(super) struct Decoder {
    pub(super) hidden: u32,
    pub(super) norm: RmsNorm,
    /// Factor of the token embedding.
    pub(super) embedding_scale: f32,
    /// What is applied to each logit.
    pub(super) after_logits: Option<Map>,
}

impl Decoder {
    /// From the usual keys.
    pub(super) fn read(e: &ModelBuilder<'_>) -> Result<Decoder, ModelError> {
        let hidden = e.size("hidden_size")?;
        let norm = RmsNorm { eps: F32(e.eps("rms_norm_eps")?), width: hidden, unit_offset: false };
        Ok(Decoder { hidden, norm, embedding_scale: 1.0, after_logits: None })
    }

    /// Emits what is wanted of the model around the two parts, each of which reads its input normalised: all of it, or
    /// its MTP head.
    pub(super) fn emit(
        &self,
        e: &mut ModelBuilder<'_>,
        attention: SublayerFn<'_>,
        feed_forward: SublayerFn<'_>,
    ) -> Result<(), ModelError> {
        if let Some(l) = e.mtp_layer() {
            return self.emit_mtp_head(e, l, attention, feed_forward);
        }
        let mut x = e.embed("model.embed_tokens.weight", self.hidden, self.embedding_scale)?;
        for l in 0..e.config.layers()? {
            x = self.layer(e, l, x, attention, feed_forward)?;
        }
        self.head(e, x)
    }

    /// Emits layer `l` around the two parts, each of which reads its input normalised.
    pub(super) fn layer(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        x: ValueId,
        attention: SublayerFn<'_>,
        feed_forward: SublayerFn<'_>,
    ) -> Result<ValueId, ModelError> {
        let hf = format!("model.layers.{l}");
        let n = e.rms_norm(&format!("l{l}.attn_norm"), &format!("{hf}.input_layernorm"), x, &self.norm)?;
        let a = attention(e, l, n)?;
        let x = e.add(&format!("l{l}.mid"), x, a)?;
        let n = e.rms_norm(&format!("l{l}.ffn_norm"), &format!("{hf}.post_attention_layernorm"), x, &self.norm)?;
        let f = feed_forward(e, l, n)?;
        e.add(&format!("l{l}.res"), x, f)
    }

    /// Emits the whole model around the two parts, of each of which the result is normalised and not the input.
    pub(super) fn emit_post_norms(
        &self,
        e: &mut ModelBuilder<'_>,
        attention: SublayerFn<'_>,
        feed_forward: SublayerFn<'_>,
    ) -> Result<(), ModelError> {
        let mut x = e.embed("model.embed_tokens.weight", self.hidden, self.embedding_scale)?;
        for l in 0..e.config.layers()? {
            let hf = format!("model.layers.{l}");
            let a = attention(e, l, x)?;
            let a = e.rms_norm(&format!("l{l}.attn_norm"), &format!("{hf}.post_attention_layernorm"), a, &self.norm)?;
            x = e.add(&format!("l{l}.mid"), x, a)?;
            let f = feed_forward(e, l, x)?;
            let f =
                e.rms_norm(&format!("l{l}.ffn_norm"), &format!("{hf}.post_feedforward_layernorm"), f, &self.norm)?;
            x = e.add(&format!("l{l}.res"), x, f)?;
        }
        self.head(e, x)
    }

    /// The wanted rows, the last norm and the logits.
    pub(super) fn head(&self, e: &mut ModelBuilder<'_>, x: ValueId) -> Result<(), ModelError> {
        let wanted = e.wanted(x)?;
        let wanted = e.rms_norm("norm", "model.norm", wanted, &self.norm)?;
        e.logits("lm_head", wanted, self.hidden, self.after_logits.clone())?;
        if e.wants_all_hidden() {
            let w = e.tensor("norm.w", "model.norm.weight", &[self.hidden])?;
            let all = e.op("all_hidden", self.norm.clone(), &[x, w])?;
            e.mtp_output(all);
        }
        Ok(())
    }
}
