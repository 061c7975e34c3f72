//! Qwen3-Next (Alibaba, 2025): gated delta nets in three of four layers, attention with a gate in the others, experts as
//! Qwen2-MoE has them, and norms whose factors are stored less one.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use super::ffn::GatedMlp;
use super::recurrent_parts::{by_group, expression, softplus};
use super::short_conv::CausalConv;
use super::{qwen2moe, qwen3moe};
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::expr::Func;
use yirage_ir::op::{GatedDelta, Map, RmsNorm};
use yirage_ir::{F32, ValueId};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let attends = e.config.attending_layers(&["full_attention"], &["linear_attention"])?;
    let dense = qwen3moe::dense_layers(e)?;
    let mlp = GatedMlp::read(e, false)?;
    let experts = MoeLayer::read(e, "moe_intermediate_size", qwen3moe::route(e)?)?;
    let shared = GatedMlp { inner: e.size("shared_expert_intermediate_size")?, ..mlp };
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    let decoder = Decoder::read(e)?;
    let decoder = Decoder { norm: RmsNorm { unit_offset: true, ..decoder.norm.clone() }, ..decoder };
    let (delta, eps) = (DeltaNet::read(e, h.hidden)?, decoder.norm.eps);
    decoder.emit(
        e,
        &|e, l, x| if attends[l as usize] { attention(e, l, &h, &attend, eps, x) } else { delta.emit(e, l, x) },
        &|e, l, x| {
            if dense[l as usize] {
                return mlp.emit_layer(e, l, x);
            }
            let routed = experts.emit(e, l, x, &ExpertTensorNames::USUAL, None)?;
            let beside = qwen2moe::gated(e, l, x, &shared)?;
            e.add(&format!("l{l}.ffn.sum"), routed, beside)
        },
    )
}

/// Rows `first` to `first + n` of each of `count` groups of `every` rows of a tensor, times `x`.
fn of_groups(
    e: &mut ModelBuilder<'_>,
    name: &str,
    hf: &str,
    [count, every, hidden]: [u32; 3],
    [first, n]: [u32; 2],
    x: ValueId,
) -> Result<ValueId, ModelError> {
    let whole = [e.product(count, every, hf)?, hidden];
    let views = (0..count).map(|group| e.rows_of(&format!("{hf}.weight"), &whole, group * every + first, n));
    let views = views.collect::<Result<Vec<_>, ModelError>>()?;
    let w = e.weight(&format!("{name}.w"), &[count * n, hidden], views)?;
    e.matmul(name, x, w, 1)
}

/// Attention whose result a gate closes: each head's query and gate lie side by side.
fn attention(
    e: &mut ModelBuilder<'_>,
    l: u32,
    h: &AttentionHeads,
    attend: &LayerAttention,
    eps: F32,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    if e.config.bool_or("attention_bias", false)? {
        return Err(e.config.invalid("attention_bias", "false"));
    }
    let (hf, width) = (format!("model.layers.{l}.self_attn"), h.width);
    let heads = [h.heads, e.product(2, width, "head_dim")?, h.hidden];
    let q = of_groups(e, &format!("l{l}.q"), &format!("{hf}.q_proj"), heads, [0, width], x)?;
    let gate = of_groups(e, &format!("l{l}.gate"), &format!("{hf}.q_proj"), heads, [width, width], x)?;
    let k = e.linear(&format!("l{l}.k"), &format!("{hf}.k_proj"), x, [h.k(), h.hidden], false)?;
    let v = e.linear(&format!("l{l}.v"), &format!("{hf}.v_proj"), x, [h.v(), h.hidden], false)?;
    let norm = RmsNorm { eps, width, unit_offset: true };
    let qkv = h.normalise(e, l, [q, k, v], [&norm, &norm])?;
    let a = attend.emit(e, l, h, qkv)?;
    let a = e.op(&format!("l{l}.attn.gated"), Map::gated(Func::Sigmoid), &[gate, a])?;
    h.output(e, l, a, false)
}

/// The sizes of a gated delta net.
struct DeltaNet {
    hidden: u32,
    heads: u32,
    key_heads: u32,
    /// Elements of a key head, and of a value head.
    key: u32,
    value: u32,
    taps: u32,
    eps: F32,
}

impl DeltaNet {
    fn read(e: &ModelBuilder<'_>, hidden: u32) -> Result<DeltaNet, ModelError> {
        let (heads, key_heads) = (e.size("linear_num_value_heads")?, e.size("linear_num_key_heads")?);
        let (key, value) = (e.size("linear_key_head_dim")?, e.size("linear_value_head_dim")?);
        if !heads.is_multiple_of(key_heads) {
            return Err(e.config.invalid("linear_num_key_heads", &format!("a divisor of {heads} value heads")));
        }
        // All rows of the input projection.
        e.product(2 * key_heads, key, "linear_num_key_heads")?;
        e.product(4, e.product(heads, value, "linear_num_value_heads")?, "linear_num_value_heads")?;
        let (taps, eps) = (e.size("linear_conv_kernel_dim")?, F32(e.eps("rms_norm_eps")?));
        Ok(DeltaNet { hidden, heads, key_heads, key, value, taps, eps })
    }

    fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (hf, name) = (format!("model.layers.{l}.linear_attn"), format!("l{l}.delta"));
        let (keys, values) = (self.key_heads * self.key, self.heads * self.value);
        // Of each key head's rows: its query, its key, and the values and gates of its value heads.
        let of_key = self.heads / self.key_heads * self.value;
        let rows = [self.key_heads, 2 * self.key + 2 * of_key, self.hidden];
        let part = |e: &mut ModelBuilder<'_>, part: &str, range: [u32; 2]| {
            of_groups(e, &format!("{name}.{part}"), &format!("{hf}.in_proj_qkvz"), rows, range, x)
        };
        let q = part(e, "q", [0, self.key])?;
        let q = self.convolve(e, l, "q", [0, keys], q)?;
        let k = part(e, "k", [self.key, self.key])?;
        let k = self.convolve(e, l, "k", [keys, keys], k)?;
        let v = part(e, "v", [2 * self.key, of_key])?;
        let v = self.convolve(e, l, "v", [2 * keys, values], v)?;
        let gate = part(e, "gate", [2 * self.key + of_key, of_key])?;
        let q = self.unit_length(e, &format!("{name}.q.unit"), q, (1.0 / f64::from(self.key).sqrt()) as f32)?;
        let k = self.unit_length(e, &format!("{name}.k.unit"), k, 1.0)?;
        let [decay, beta] = self.decay_and_beta(e, l, &hf, x)?;
        let [state, table] = e.recurrent_state(&format!("{l}.delta"), [self.key, values])?;
        let ins = [state, q, k, v, decay, beta, e.inputs.positions, e.inputs.seqs, table];
        let op = GatedDelta { heads: self.heads, key_heads: self.key_heads };
        let y = e.ops(&[&format!("{name}.y"), &format!("{name}.state")], op, &ins)?[0];
        let norm = RmsNorm { eps: self.eps, width: self.value, unit_offset: false };
        let y = e.rms_norm(&format!("{name}.norm"), &format!("{hf}.norm"), y, &norm)?;
        let y = e.op(&format!("{name}.gated"), Map::gated(Func::Silu), &[gate, y])?;
        e.linear(&format!("{name}.o"), &format!("{hf}.out_proj"), y, [self.hidden, values], false)
    }

    fn convolve(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        part: &str,
        [first, channels]: [u32; 2],
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let of = 2 * self.key_heads * self.key + self.heads * self.value;
        let conv = CausalConv { of, first, channels, taps: self.taps, bias: false };
        let (name, hf) = (format!("l{l}.delta.{part}.conv"), format!("model.layers.{l}.linear_attn.conv1d"));
        let x = conv.emit(e, &name, &format!("{l}.{part}"), &hf, x)?;
        e.op(&format!("{name}.act"), Map::of(Func::Silu), &[x])
    }

    /// Heads of keys divided by their length, times a factor.
    fn unit_length(
        &self,
        e: &mut ModelBuilder<'_>,
        name: &str,
        x: ValueId,
        factor: f32,
    ) -> Result<ValueId, ModelError> {
        let text = format!("mul(mul(x0, rsqrt(add(mul(x1, {:?}), 0.000001))), {factor:?})", self.key as f32);
        by_group(e, name, x, [self.key_heads, self.key], &text)
    }

    /// How much of the state stays, and how much of a correction is made, for each value head.
    fn decay_and_beta(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        hf: &str,
        x: ValueId,
    ) -> Result<[ValueId; 2], ModelError> {
        let (name, each) = (format!("l{l}.delta"), self.heads / self.key_heads);
        let (rows, tensor) = ([self.key_heads, 2 * each, self.hidden], format!("{hf}.in_proj_ba"));
        let beta = of_groups(e, &format!("{name}.beta.in"), &tensor, rows, [0, each], x)?;
        let beta = e.op(&format!("{name}.beta"), Map::of(Func::Sigmoid), &[beta])?;
        let step = of_groups(e, &format!("{name}.step.in"), &tensor, rows, [each, each], x)?;
        let bias = e.tensor(&format!("{name}.step.b"), &format!("{hf}.dt_bias"), &[self.heads])?;
        let step = e.add(&format!("{name}.step.sum"), step, bias)?;
        let step = softplus(e, &format!("{name}.step"), step)?;
        let a = e.tensor(&format!("{name}.a"), &format!("{hf}.A_log"), &[self.heads])?;
        let decay = expression("exp(mul(neg(exp(x1)), x0))")?;
        Ok([e.op(&format!("{name}.decay"), decay, &[step, a])?, beta])
    }
}
