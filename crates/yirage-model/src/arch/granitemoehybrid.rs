//! Granite 4 (IBM, 2025): Granite 3 with Mamba-2 in most layers, a dense part in each, and experts in some models.

use super::emit::ModelBuilder;
use super::experts::MoeLayer;
use super::granite::{self, GraniteAttention};
use super::granitemoe;
use super::mamba2_mixer::{Mamba2Mixer, MixerKeys};
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::ValueId;
use yirage_ir::expr::Func;
use yirage_ir::op::Map;

const KEYS: MixerKeys = MixerKeys {
    heads: "mamba_n_heads",
    head: "mamba_d_head",
    state: "mamba_d_state",
    groups: "mamba_n_groups",
    taps: "mamba_d_conv",
    conv_bias: "mamba_conv_bias",
    bias: "mamba_proj_bias",
    eps: "rms_norm_eps",
    least_step: None,
};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let attends = e.config.attending_layers(&["full_attention", "attention"], &["linear_attention", "mamba"])?;
    let mixer = if attends.contains(&false) { Some(Mamba2Mixer::read(e, &KEYS)?) } else { None };
    let attention = if attends.contains(&true) { Some(attention(e)?) } else { None };
    let shared = SharedMlp::read(e)?;
    let experts = if e.config.u32_or("num_experts", 0)? > 0 { Some(granitemoe::experts(e)?) } else { None };
    granite::frame(
        e,
        &|e, l, x| match (&attention, &mixer) {
            (Some(attention), _) if attends[l as usize] => attention.emit(e, l, x),
            (_, Some(mixer)) => mixer.emit(e, l, &format!("model.layers.{l}.mamba"), x),
            _ => Err(e.config.invalid("layer_types", "a kind for every layer")),
        },
        &|e, l, x| feed_forward(e, l, x, &shared, experts.as_ref()),
    )
}

/// Rotation is what a configuration asks for by name.
fn attention(e: &mut ModelBuilder<'_>) -> Result<GraniteAttention, ModelError> {
    let width = e.size("head_dim")?;
    let rotation = match e.config.opt_str("position_embedding_type")? {
        None | Some("nope") => None,
        Some("rope") => Some(e.rotation(LayerType::Full, width, e.is_gguf())?),
        Some(_) => return Err(e.config.invalid("position_embedding_type", "\"rope\", \"nope\" or null")),
    };
    GraniteAttention::read(e, rotation)
}

fn feed_forward(
    e: &mut ModelBuilder<'_>,
    l: u32,
    x: ValueId,
    shared: &SharedMlp,
    experts: Option<&MoeLayer>,
) -> Result<ValueId, ModelError> {
    let dense = shared.emit(e, l, x)?;
    let Some(experts) = experts else { return Ok(dense) };
    let chosen = experts.emit(e, l, x, &granitemoe::TENSORS, None)?;
    e.add(&format!("l{l}.ffn.all"), chosen, dense)
}

/// The dense part, of which one tensor has the rows of gate and then those of up. GGUF files hold two.
struct SharedMlp {
    hidden: u32,
    inner: u32,
    gate: Func,
}

impl SharedMlp {
    fn read(e: &ModelBuilder<'_>) -> Result<SharedMlp, ModelError> {
        let (hidden, inner) = (e.size("hidden_size")?, e.size("shared_intermediate_size")?);
        e.product(2, inner, "shared_intermediate_size")?;
        Ok(SharedMlp { hidden, inner, gate: super::ffn::gate(e)? })
    }

    fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (hf, shape) = (format!("model.layers.{l}.shared_mlp"), [self.inner, self.hidden]);
        if e.is_gguf() {
            return self.emit_gguf(e, l, x);
        }
        let mut half = |part: &str, first: u32| {
            let of = [2 * self.inner, self.hidden];
            let rows = e.rows_of(&format!("{hf}.input_linear.weight"), &of, first, self.inner)?;
            e.project(&format!("l{l}.shared.{part}"), x, shape, rows, None)
        };
        let (gate, up) = (half("gate", 0)?, half("up", self.inner)?);
        let act = e.op(&format!("l{l}.shared.act"), Map::gated(self.gate), &[gate, up])?;
        let down = [self.hidden, self.inner];
        e.linear(&format!("l{l}.shared.down"), &format!("{hf}.output_linear"), act, down, false)
    }

    fn emit_gguf(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (hf, shape) = (format!("model.layers.{l}"), [self.inner, self.hidden]);
        // Where there are no experts beside it, it is called as what other families have instead of experts.
        let shared = e.has(&format!("{hf}.shared_mlp.gate_proj.weight"));
        let [gate, up, down] = match shared {
            true => ["shared_mlp.gate_proj", "shared_mlp.up_proj", "shared_mlp.output_linear"],
            false => ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"],
        };
        let gate = e.linear(&format!("l{l}.shared.gate"), &format!("{hf}.{gate}"), x, shape, false)?;
        let up = e.linear(&format!("l{l}.shared.up"), &format!("{hf}.{up}"), x, shape, false)?;
        let act = e.op(&format!("l{l}.shared.act"), Map::gated(self.gate), &[gate, up])?;
        e.linear(&format!("l{l}.shared.down"), &format!("{hf}.{down}"), act, [self.hidden, self.inner], false)
    }
}
