//! The frame that most decoders share: each part of a layer reads its input normalised and adds to it.

use super::emit::ModelBuilder;
use crate::error::ModelError;
use yirage_ir::op::RmsNorm;
use yirage_ir::{F32, ValueId};

/// What is emitted of a part of layer `l` from its normalised input.
pub(super) type SublayerFn<'p> = &'p dyn Fn(&mut ModelBuilder<'_>, u32, ValueId) -> Result<ValueId, ModelError>;

/// A decoder with RMS norms before both parts of a layer.
pub(super) struct Decoder {
    pub(super) hidden: u32,
    pub(super) norm: RmsNorm,
}

impl Decoder {
    /// From the usual keys.
    pub(super) fn read(e: &ModelBuilder<'_>) -> Result<Decoder, ModelError> {
        let hidden = e.size("hidden_size")?;
        Ok(Decoder { hidden, norm: RmsNorm { eps: F32(e.eps("rms_norm_eps")?), width: hidden, unit_offset: false } })
    }

    /// Emits the whole model around the two parts.
    pub(super) fn emit(
        &self,
        e: &mut ModelBuilder<'_>,
        attention: SublayerFn<'_>,
        feed_forward: SublayerFn<'_>,
    ) -> Result<(), ModelError> {
        let mut x = e.embed("model.embed_tokens.weight", self.hidden, 1.0)?;
        for l in 0..e.config.layers()? {
            let hf = format!("model.layers.{l}");
            let n = e.rms_norm(&format!("l{l}.attn_norm"), &format!("{hf}.input_layernorm"), x, &self.norm)?;
            let a = attention(e, l, n)?;
            x = e.add(&format!("l{l}.mid"), x, a)?;
            let n = e.rms_norm(&format!("l{l}.ffn_norm"), &format!("{hf}.post_attention_layernorm"), x, &self.norm)?;
            let f = feed_forward(e, l, n)?;
            x = e.add(&format!("l{l}.res"), x, f)?;
        }
        self.head(e, x, 0.0)
    }

    /// The wanted rows, the last norm and the logits.
    pub(super) fn head(&self, e: &mut ModelBuilder<'_>, x: ValueId, softcap: f32) -> Result<(), ModelError> {
        let x = e.wanted(x)?;
        let x = e.rms_norm("norm", "model.norm", x, &self.norm)?;
        e.logits("lm_head", x, self.hidden, softcap)
    }
}
