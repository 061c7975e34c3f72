//! Nemotron-H and Nemotron 3 (NVIDIA, 2025): layers of one part each, which is Mamba-2, attention without any rotation, a
//! feed-forward part of squared positives, or experts of such parts beside a shared one.

use super::attention::{AttentionHeads, LayerAttention};
use super::deepseek_moe::sigmoid_route;
use super::emit::ModelBuilder;
use super::mamba2_mixer::{Mamba2Mixer, MixerKeys};
use super::recurrent_parts::expression;
use crate::error::ModelError;
use crate::tensor_names;
use yirage_ir::op::{ExpertLinear, ExpertSum, Map, RmsNorm, Route};
use yirage_ir::{F32, ValueId};

const KEYS: MixerKeys = MixerKeys {
    heads: "mamba_num_heads",
    head: "mamba_head_dim",
    state: "ssm_state_size",
    groups: "n_groups",
    taps: "conv_kernel",
    conv_bias: "use_conv_bias",
    bias: "use_bias",
    eps: "layer_norm_epsilon",
    least_step: Some("time_step_min"),
};

/// A layer's part.
enum Part {
    Recurrent,
    Attention,
    Mlp,
    Experts,
}

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let parts = parts(e)?;
    let hidden = e.size("hidden_size")?;
    let norm = RmsNorm { eps: F32(e.eps("layer_norm_epsilon")?), width: hidden, unit_offset: false };
    let mut x = e.embed("backbone.embeddings.weight", hidden, 1.0)?;
    for (l, part) in (0..).zip(&parts) {
        let hf = format!("backbone.layers.{l}");
        let n = e.rms_norm(&format!("l{l}.norm"), &format!("{hf}.norm"), x, &norm)?;
        let hf = format!("{hf}.mixer");
        let y = match part {
            Part::Recurrent => Mamba2Mixer::read(e, &KEYS)?.emit(e, l, &hf, n)?,
            Part::Attention => attention(e, l, &hf, n)?,
            Part::Mlp => SquaredMlp::read(e, "intermediate_size")?.emit(e, &format!("l{l}.ffn"), &hf, n)?,
            Part::Experts => Experts::read(e)?.emit(e, l, &hf, n)?,
        };
        x = e.add(&format!("l{l}.res"), x, y)?;
    }
    let x = e.wanted(x)?;
    let x = e.rms_norm("norm", "backbone.norm_f", x, &norm)?;
    e.logits("lm_head", x, hidden, None)
}

fn parts(e: &ModelBuilder<'_>) -> Result<Vec<Part>, ModelError> {
    let names = e.config.opt_str_list("layer_types")?.unwrap_or_default();
    if names.len() != e.config.layers()? as usize {
        return Err(e.config.invalid("layer_types", &format!("a list of {}", e.config.layers()?)));
    }
    let part = |name: &&str| match *name {
        "linear_attention" | "mamba" => Ok(Part::Recurrent),
        "full_attention" | "attention" => Ok(Part::Attention),
        "mlp" => Ok(Part::Mlp),
        "moe" => Ok(Part::Experts),
        other => Err(ModelError::Unsupported {
            what: format!("the layer type {other:?}"),
            why: format!(
                "{}: {} names it; linear_attention, full_attention, mlp and moe are known",
                e.config.file(),
                e.config.called("layer_types")
            ),
        }),
    };
    names.iter().map(part).collect()
}

fn attention(e: &mut ModelBuilder<'_>, l: u32, hf: &str, x: ValueId) -> Result<ValueId, ModelError> {
    let h = AttentionHeads::read(e)?;
    let mut one = |part: &str, n: u32| {
        let hf = format!("{hf}.{part}_proj");
        let bias = e.biased(false, &format!("{hf}.bias"));
        e.linear(&format!("l{l}.{part}"), &hf, x, [n, h.hidden], bias)
    };
    let qkv = [one("q", h.q())?, one("k", h.k())?, one("v", h.v())?];
    let a = LayerAttention::full(None, h.scale()).emit(e, l, &h, qkv)?;
    let hf = format!("{hf}.o_proj");
    let bias = e.biased(false, &format!("{hf}.bias"));
    e.linear(&format!("l{l}.o"), &hf, a, [h.hidden, h.heads * h.v_width], bias)
}

/// The function between two matrices.
fn squared_positive(e: &ModelBuilder<'_>) -> Result<Map, ModelError> {
    match e.config.str("mlp_hidden_act")? {
        "relu2" => expression("square(max(x0, 0.0))"),
        other => Err(ModelError::Unsupported {
            what: format!("the activation {other:?}"),
            why: format!("{}: {} names it; relu2 is known", e.config.file(), e.config.called("mlp_hidden_act")),
        }),
    }
}

/// A feed-forward part of two matrices.
struct SquaredMlp {
    hidden: u32,
    inner: u32,
    bias: bool,
    act: Map,
}

impl SquaredMlp {
    fn read(e: &ModelBuilder<'_>, inner: &str) -> Result<SquaredMlp, ModelError> {
        let (hidden, inner, bias) = (e.size("hidden_size")?, e.size(inner)?, e.config.bool_or("mlp_bias", false)?);
        Ok(SquaredMlp { hidden, inner, bias, act: squared_positive(e)? })
    }

    fn emit(&self, e: &mut ModelBuilder<'_>, name: &str, hf: &str, x: ValueId) -> Result<ValueId, ModelError> {
        let [up, down] = ["up", "down"].map(|part| format!("{hf}.{part}_proj"));
        let bias = e.biased(self.bias, &format!("{up}.bias"));
        let x = e.linear(&format!("{name}.up"), &up, x, [self.inner, self.hidden], bias)?;
        let x = e.op(&format!("{name}.act"), self.act.clone(), &[x])?;
        let bias = e.biased(self.bias, &format!("{down}.bias"));
        e.linear(&format!("{name}.down"), &down, x, [self.hidden, self.inner], bias)
    }
}

/// Experts of two matrices, possibly in a narrower space, beside a shared one.
struct Experts {
    hidden: u32,
    /// Width of what the experts read and give.
    latent: Option<u32>,
    inner: u32,
    count: u32,
    bias: bool,
    act: Map,
    route: Route,
    shared: SquaredMlp,
}

impl Experts {
    fn read(e: &ModelBuilder<'_>) -> Result<Experts, ModelError> {
        Ok(Experts {
            hidden: e.size("hidden_size")?,
            latent: if e.config.has("moe_latent_size") { Some(e.size("moe_latent_size")?) } else { None },
            inner: e.size("moe_intermediate_size")?,
            count: e.size("num_experts")?,
            bias: e.config.bool_or("mlp_bias", false)?,
            act: squared_positive(e)?,
            route: sigmoid_route(e)?,
            shared: SquaredMlp::read(e, "moe_shared_expert_intermediate_size")?,
        })
    }

    fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, hf: &str, x: ValueId) -> Result<ValueId, ModelError> {
        let logits = e.linear(&format!("l{l}.router"), &format!("{hf}.gate"), x, [self.count, self.hidden], false)?;
        let correction = format!("{hf}.gate.e_score_correction_bias");
        let correction = e.tensor(&format!("l{l}.correction"), &correction, &[self.count])?;
        let names = [format!("l{l}.chances"), format!("l{l}.chosen")];
        let chosen = e.ops(&[&names[0], &names[1]], self.route.clone(), &[logits, correction])?;
        let width = self.latent.unwrap_or(self.hidden);
        let inside = match self.latent {
            Some(latent) => self.carry(e, l, hf, "fc1_latent_proj", x, [latent, self.hidden])?,
            None => x,
        };
        let top_k = self.route.top_k;
        let up = self.weight(e, l, hf, "up", [self.inner, width])?;
        let y = e.op(&format!("l{l}.ffn.up"), ExpertLinear { top_k, shared: true }, &[inside, up, chosen[1]])?;
        let y = e.op(&format!("l{l}.ffn.act"), self.act.clone(), &[y])?;
        let down = self.weight(e, l, hf, "down", [width, self.inner])?;
        let y = e.op(&format!("l{l}.ffn.down"), ExpertLinear { top_k, shared: false }, &[y, down, chosen[1]])?;
        let y = e.op(&format!("l{l}.ffn"), ExpertSum { top_k }, &[y, chosen[0]])?;
        let y = match self.latent {
            Some(latent) => self.carry(e, l, hf, "fc2_latent_proj", y, [self.hidden, latent])?,
            None => y,
        };
        let beside = self.shared.emit(e, &format!("l{l}.shared"), &format!("{hf}.shared_experts"), x)?;
        e.add(&format!("l{l}.ffn.sum"), y, beside)
    }

    /// Into the experts' space, or out of it.
    fn carry(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        hf: &str,
        part: &str,
        x: ValueId,
        shape: [u32; 2],
    ) -> Result<ValueId, ModelError> {
        let hf = format!("{hf}.{part}");
        let bias = e.biased(self.bias, &format!("{hf}.bias"));
        e.linear(&format!("l{l}.ffn.{part}"), &hf, x, shape, bias)
    }

    /// One of the two matrices of all experts.
    fn weight(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        hf: &str,
        part: &str,
        [n, k]: [u32; 2],
    ) -> Result<ValueId, ModelError> {
        let (name, shape) = (format!("l{l}.ffn.{part}.w"), [self.count, n, k]);
        if e.is_gguf() {
            return e.tensor(&name, &tensor_names::stacked_experts(l, part, "weight"), &shape);
        }
        let one = |i: u32| e.whole(&format!("{hf}.experts.{i}.{part}_proj.weight"), &[n, k]);
        let views = (0..self.count).map(one).collect::<Result<Vec<_>, _>>()?;
        e.weight(&name, &shape, views)
    }
}
