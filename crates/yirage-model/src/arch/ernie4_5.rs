//! ERNIE 4.5 (Baidu, 2025): Llama whose neighbouring elements rotate, with biases everywhere or nowhere. The mixture chooses
//! experts by corrected softmax, beside shared ones, in some of its layers.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::{Decoder, SublayerFn};
use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::F32;
use yirage_ir::op::{Route, Scoring};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let mlp = GatedMlp::read(e, e.config.bool_or("use_bias", false)?)?;
    frame(e, &|e, l, x| mlp.emit_layer(e, l, x))
}

/// The model around a feed-forward part.
fn frame(e: &mut ModelBuilder<'_>, feed_forward: SublayerFn<'_>) -> Result<(), ModelError> {
    let h = AttentionHeads::read(e)?;
    let bias = e.config.bool_or("use_bias", false)?;
    let rotation = e.rotation(LayerType::Full, h.width, true)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, bias)?;
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, bias)
        },
        feed_forward,
    )
}

/// The mixture of experts.
pub(super) fn emit_moe(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let mlp = GatedMlp::read(e, e.config.bool_or("use_bias", false)?)?;
    // Below this sum, weights are not divided by it: no sum of chosen probabilities that a float holds is.
    if e.positive("moe_norm_min", 1e-12)? > 1e-9 {
        return Err(e.config.invalid("moe_norm_min", "at most 1e-9"));
    }
    let route = Route {
        top_k: e.size("num_experts_per_tok")?,
        scoring: Scoring::Softmax,
        normalize: true,
        scale: F32(1.0),
        groups: 1,
        top_groups: 1,
    };
    let experts = MoeLayer::read(e, "moe_intermediate_size", route)?;
    let shared = match e.config.u32_or("n_shared_experts", 0)? {
        0 => None,
        n => Some(GatedMlp { inner: e.product(n, experts.inner, "n_shared_experts")?, ..mlp }),
    };
    let has_experts = moe_layers(e)?;
    frame(e, &|e, l, x| {
        if !has_experts[l as usize] {
            return mlp.emit_layer(e, l, x);
        }
        let hf = format!("model.layers.{l}.mlp");
        let name = format!("{hf}.moe_statics.e_score_correction_bias");
        // One row of them, or the row alone.
        let rows = e.whole(&name, &[1, experts.count]);
        let correction = rows.or_else(|_| e.whole(&name, &[experts.count]))?;
        let correction = e.weight(&format!("l{l}.correction"), &[experts.count], vec![correction])?;
        let routed = experts.emit(e, l, x, &ExpertTensorNames::USUAL, Some(correction))?;
        let Some(shared) = &shared else { return Ok(routed) };
        let beside = shared.emit(e, &format!("l{l}.shared"), &format!("{hf}.shared_experts"), x)?;
        e.add(&format!("l{l}.ffn.sum"), routed, beside)
    })
}

/// Which layers have experts: every n-th of those from the first to the last.
fn moe_layers(e: &ModelBuilder<'_>) -> Result<Vec<bool>, ModelError> {
    let layers = e.config.layers()?;
    let (first, every) = (e.config.u32_or("moe_layer_start_index", 1)?, e.size("moe_layer_interval")?);
    let last = match e.config.f64_or("moe_layer_end_index", -1.0)? {
        -1.0 => layers - 1,
        _ => e.config.u32("moe_layer_end_index")?,
    };
    Ok((0..layers).map(|l| (l + 1).is_multiple_of(every) && (first..=last).contains(&l)).collect())
}
