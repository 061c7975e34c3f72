//! Gemma 4 (Google DeepMind, 2026), its language model: as Gemma 3, with wider heads in layers that attend to everything, of
//! which a part rotates, norms of values, and a factor of each layer's rows. Small ones have embeddings for each layer, and
//! last layers that read the keys and values of earlier ones; large ones have experts beside the feed-forward part, and
//! values that are the keys before their norm.

use super::attention::AttentionHeads;
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use super::ffn::GatedMlp;
use super::key_sharing::KeySharing;
use super::per_layer_embedding::PerLayerEmbedding;
use crate::config::LayerType;
use crate::error::ModelError;
use serde_json::Value;
use yirage_ir::expr::Func;
use yirage_ir::op::{Gather, Map, RmsNorm, Route, Scoring};
use yirage_ir::{F32, ValueId};

const TENSORS: ExpertTensorNames =
    ExpertTensorNames::Stacked { router: "router.proj", gate_up: "experts.gate_up_proj", down: "experts.down_proj" };

/// The width of heads in layers that attend to everything, where a file does not say it.
const WIDE_HEAD: u32 = 512;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    e.with_post_norms();
    check_types(e)?;
    let model = Gemma4::read(e)?;
    let equal = e.config.bool_or("attention_k_eq_v", false)?;
    let mut attention = KeySharing::read(e, &|e, l, of| heads(e, l, of, equal), equal)?;
    let mut decoder = Decoder::read(e)?;
    let hidden = decoder.hidden;
    let mut x = e.embed("model.embed_tokens.weight", hidden, f64::from(hidden).sqrt() as f32)?;
    let own = PerLayerEmbedding::emit(e, x, &decoder.norm, model.mlp.gate)?;
    for l in 0..e.config.layers()? {
        let n = norm(e, l, "attn_norm", "input_layernorm", x, &decoder.norm)?;
        let a = attention.emit(e, l, n)?;
        let a = norm(e, l, "attn_post_norm", "post_attention_layernorm", a, &decoder.norm)?;
        let mid = e.add(&format!("l{l}.mid"), x, a)?;
        let f = model.feed_forward(e, l, attention.keeps_nothing(l), mid, &decoder.norm)?;
        let f = norm(e, l, "ffn_post_norm", "post_feedforward_layernorm", f, &decoder.norm)?;
        x = e.add(&format!("l{l}.res"), mid, f)?;
        if let Some(own) = &own {
            let added = own.of_layer(e, l, x)?;
            let added = norm(e, l, "own.norm", "post_per_layer_input_norm", added, &decoder.norm)?;
            x = e.add(&format!("l{l}.own.res"), x, added)?;
        }
        let factor = e.tensor(&format!("l{l}.factor.w"), &format!("model.layers.{l}.layer_scalar"), &[1])?;
        x = e.op(&format!("l{l}.out"), Map::of(Func::Mul), &[x, factor])?;
    }
    let cap = e.positive("final_logit_softcapping", 0.0)? as f32;
    decoder.after_logits = (cap > 0.0).then(|| Map::softcap(cap));
    decoder.head(e, x)
}

/// Refuses what the reference code would read as other layers or another vocabulary than the file states.
fn check_types(e: &ModelBuilder<'_>) -> Result<(), ModelError> {
    if e.config.layer_types()?.last() != Some(&LayerType::Full) {
        return Err(e.config.invalid("layer_types", "full_attention for the last layer"));
    }
    let own = e.config.u32_or("hidden_size_per_layer_input", 0)? > 0;
    if own && e.size("vocab_size_per_layer_input")? < e.size("vocab_size")? {
        return Err(e.config.invalid("vocab_size_per_layer_input", "an integer from vocab_size on"));
    }
    Ok(())
}

fn norm(
    e: &mut ModelBuilder<'_>,
    l: u32,
    name: &str,
    hf: &str,
    x: ValueId,
    norm: &RmsNorm,
) -> Result<ValueId, ModelError> {
    e.rms_norm(&format!("l{l}.{name}"), &format!("model.layers.{l}.{hf}"), x, norm)
}

/// What is read of the configuration beside attention.
struct Gemma4 {
    mlp: GatedMlp,
    /// Whether layers that keep nothing have a feed-forward part of twice the width.
    doubles: bool,
    experts: Option<MoeLayer>,
}

impl Gemma4 {
    fn read(e: &ModelBuilder<'_>) -> Result<Gemma4, ModelError> {
        let experts = match e.config.bool_or("enable_moe_block", false)? {
            true => Some(MoeLayer::read(e, "moe_intermediate_size", route(e)?)?),
            false => None,
        };
        let doubles = e.config.bool_or("use_double_wide_mlp", false)?;
        Ok(Gemma4 { mlp: GatedMlp::read(e, false)?, doubles, experts })
    }

    /// The feed-forward part of layer `l` and its experts, before the norm of their sum.
    fn feed_forward(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        keeps_nothing: bool,
        x: ValueId,
        of_rows: &RmsNorm,
    ) -> Result<ValueId, ModelError> {
        let n = norm(e, l, "ffn_norm", "pre_feedforward_layernorm", x, of_rows)?;
        let inner = if self.doubles && keeps_nothing {
            e.product(self.mlp.inner, 2, "intermediate_size")?
        } else {
            self.mlp.inner
        };
        let f = GatedMlp { inner, ..self.mlp }.emit(e, &format!("l{l}.mlp"), &format!("model.layers.{l}.mlp"), n)?;
        let Some(experts) = &self.experts else { return Ok(f) };
        let f = norm(e, l, "mlp.norm", "post_feedforward_layernorm_1", f, of_rows)?;
        let routed = self.routed(e, l, experts, x, of_rows)?;
        let routed = norm(e, l, "experts.norm", "post_feedforward_layernorm_2", routed, of_rows)?;
        e.add(&format!("l{l}.ffn.sum"), f, routed)
    }

    /// What the chosen experts of layer `l` make of its rows, each times a factor of its own.
    fn routed(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        experts: &MoeLayer,
        x: ValueId,
        of_rows: &RmsNorm,
    ) -> Result<ValueId, ModelError> {
        let router = format!("model.layers.{l}.router");
        let w = e.tensor(&format!("l{l}.router.norm.w"), &format!("{router}.scale"), &[experts.hidden])?;
        let n = e.op(&format!("l{l}.router.norm"), of_rows.clone(), &[x, w])?;
        let n = e.scale(&format!("l{l}.router.scaled"), n, (1.0 / f64::from(experts.hidden).sqrt()) as f32)?;
        let logits = experts.logits(e, l, n, &TENSORS)?;
        let [chances, chosen] = experts.choose(e, l, logits, None)?;
        let factors = format!("{router}.per_expert_scale");
        let factors = e.tensor(&format!("l{l}.router.factors.w"), &factors, &[experts.count])?;
        let factors = e.op(&format!("l{l}.router.factors"), Gather { axis: 0 }, &[factors, chosen])?;
        let weights = e.op(&format!("l{l}.router.weights"), Map::of(Func::Mul), &[chances, factors])?;
        let n = norm(e, l, "experts.input", "pre_feedforward_layernorm_2", x, of_rows)?;
        let results = experts.results(e, l, n, &TENSORS, chosen)?;
        experts.sum(e, l, results, weights)
    }
}

/// The choice of experts.
fn route(e: &ModelBuilder<'_>) -> Result<Route, ModelError> {
    let top_k = e.size("top_k_experts")?;
    Ok(Route { top_k, scoring: Scoring::Softmax, normalize: true, scale: F32(1.0), groups: 1, top_groups: 1 })
}

/// The heads of layer `l`: newer files state what differs from the rest layer by layer, older ones for all that attend to
/// everything.
fn heads(e: &ModelBuilder<'_>, l: u32, of: LayerType, equal: bool) -> Result<AttentionHeads, ModelError> {
    const LISTED: &str = "per_layer_config";
    let usual = AttentionHeads::read(e)?;
    let (mut width, mut kv_heads) = (usual.width, usual.kv_heads);
    match e.config.get(LISTED) {
        Some(Value::Object(layers)) => {
            let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
            let wrong = || e.config.invalid(LISTED, "for some layers head_dim and num_key_value_heads above 0");
            let none = serde_json::Map::new();
            let own = match layers.get(&l.to_string()) {
                None => &none,
                Some(own) => own.as_object().ok_or_else(wrong)?,
            };
            for (key, value) in own {
                match key.as_str() {
                    "head_dim" => width = number(value).ok_or_else(wrong)?,
                    "num_key_value_heads" => kv_heads = number(value).ok_or_else(wrong)?,
                    _ => return Err(wrong()),
                }
            }
        }
        Some(_) => return Err(e.config.invalid(LISTED, "an object")),
        None if of == LayerType::Full => {
            width = e.config.u32_or("global_head_dim", WIDE_HEAD)?;
            let stated = if equal { e.config.opt_u32("num_global_key_value_heads")? } else { None };
            kv_heads = stated.unwrap_or(kv_heads);
        }
        None => {}
    }
    if width == 0 || kv_heads == 0 || !usual.heads.is_multiple_of(kv_heads) {
        return Err(e.config.invalid("num_attention_heads", "a multiple of the key heads of each layer"));
    }
    e.product(usual.heads, width, "num_attention_heads times the width of a layer's heads")?;
    Ok(AttentionHeads { kv_heads, width, v_width: width, ..usual })
}
