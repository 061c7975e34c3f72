//! Mamba-2 without attention (Dao and Gu, 2024): the mixer is all that a layer has.

use super::emit::ModelBuilder;
use super::mamba2_mixer::{Mamba2Mixer, MixerKeys};
use crate::error::ModelError;
use yirage_ir::F32;
use yirage_ir::op::RmsNorm;

const KEYS: MixerKeys = MixerKeys {
    heads: "num_heads",
    head: "head_dim",
    state: "state_size",
    groups: "n_groups",
    taps: "conv_kernel",
    conv_bias: "use_conv_bias",
    bias: "use_bias",
    eps: "layer_norm_epsilon",
    least_step: None,
};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let (mixer, hidden) = (Mamba2Mixer::read(e, &KEYS)?, e.size("hidden_size")?);
    let norm = RmsNorm { eps: F32(e.eps(KEYS.eps)?), width: hidden, unit_offset: false };
    let mut x = e.embed("backbone.embeddings.weight", hidden, 1.0)?;
    for l in 0..e.config.layers()? {
        let hf = format!("backbone.layers.{l}");
        let n = e.rms_norm(&format!("l{l}.ssm_norm"), &format!("{hf}.norm"), x, &norm)?;
        let y = mixer.emit(e, l, &format!("{hf}.mixer"), n)?;
        x = e.add(&format!("l{l}.res"), x, y)?;
    }
    let x = e.wanted(x)?;
    let x = e.rms_norm("norm", "backbone.norm_f", x, &norm)?;
    e.logits("lm_head", x, hidden, None)
}
