//! Gated delta nets (Yang et al., arXiv 2412.06464): short convolutions of queries, keys and values, linear attention by the
//! gated delta rule behind them, and a gate that closes what it gives.

use super::emit::ModelBuilder;
use super::recurrent_parts::{TiledHeads, by_group, decay, softplus};
use super::short_conv::CausalConv;
use crate::error::ModelError;
use crate::weights::WeightView;
use yirage_ir::expr::Func;
use yirage_ir::op::{GatedDelta, Map, RmsNorm};
use yirage_ir::{F32, ValueId};

/// The sizes of a gated delta net.
pub(super) struct DeltaNet {
    hidden: u32,
    heads: u32,
    key_heads: u32,
    /// Elements of a key head, and of a value head.
    key: u32,
    value: u32,
    taps: u32,
    eps: F32,
    /// Where the file has value heads in another order than that of their key heads.
    tiled: Option<TiledHeads>,
}

impl DeltaNet {
    pub(super) fn read(e: &ModelBuilder<'_>, hidden: u32) -> Result<DeltaNet, ModelError> {
        let (heads, key_heads) = (e.size("linear_num_value_heads")?, e.size("linear_num_key_heads")?);
        let (key, value) = (e.size("linear_key_head_dim")?, e.size("linear_value_head_dim")?);
        if !heads.is_multiple_of(key_heads) {
            return Err(e.config.invalid("linear_num_key_heads", &format!("a divisor of {heads} value heads")));
        }
        // All rows of the input projection.
        e.product(2 * key_heads, key, "linear_num_key_heads")?;
        e.product(4, e.product(heads, value, "linear_num_value_heads")?, "linear_num_value_heads")?;
        let (taps, eps) = (e.size("linear_conv_kernel_dim")?, F32(e.eps("rms_norm_eps")?));
        let tiles = e.is_gguf() && e.config.model_type()? != "qwen3_next";
        let tiled = tiles.then_some(TiledHeads { key_heads, each: heads / key_heads });
        Ok(DeltaNet { hidden, heads, key_heads, key, value, taps, eps, tiled })
    }

    pub(super) fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (hf, name) = (format!("model.layers.{l}.linear_attn"), format!("l{l}.delta"));
        let (keys, values) = (self.key_heads * self.key, self.heads * self.value);
        let fused = e.has(&format!("{hf}.in_proj_qkvz.weight"));
        let [q, k, v, gate] = if fused { self.project_fused(e, l, &hf, x)? } else { self.project(e, l, &hf, x)? };
        let q = self.convolve(e, l, "q", [0, keys], q)?;
        let k = self.convolve(e, l, "k", [keys, keys], k)?;
        let v = self.convolve(e, l, "v", [2 * keys, values], v)?;
        let q = self.unit_length(e, &format!("{name}.q.unit"), q, (1.0 / f64::from(self.key).sqrt()) as f32)?;
        let k = self.unit_length(e, &format!("{name}.k.unit"), k, 1.0)?;
        let [decay, beta] = self.decay_and_beta(e, l, &hf, x)?;
        let [state, table] = e.recurrent_state(&format!("{l}.delta"), [self.key, values])?;
        let ins = [state, q, k, v, decay, beta, e.inputs.positions, e.inputs.seqs, table];
        let op = GatedDelta { heads: self.heads, key_heads: self.key_heads, block_positions: e.kv_block() };
        let y = e.ops(&[&format!("{name}.y"), &format!("{name}.state")], op, &ins)?[0];
        let norm = RmsNorm { eps: self.eps, width: self.value, unit_offset: false };
        let y = e.rms_norm(&format!("{name}.norm"), &format!("{hf}.norm"), y, &norm)?;
        let y = e.op(&format!("{name}.gated"), Map::gated(Func::Silu), &[gate, y])?;
        let y = match self.tiled {
            Some(tiled) if tiled.each > 1 => tiled.restore(e, &format!("{name}.tiled"), y, self.value)?,
            _ => y,
        };
        e.linear(&format!("{name}.o"), &format!("{hf}.out_proj"), y, [self.hidden, values], false)
    }

    /// Queries, keys, values and gates where a tensor has, of each key head, its query, its key, and the values and gates of
    /// its value heads.
    fn project_fused(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        hf: &str,
        x: ValueId,
    ) -> Result<[ValueId; 4], ModelError> {
        let of_key = self.heads / self.key_heads * self.value;
        let rows = [self.key_heads, 2 * self.key + 2 * of_key, self.hidden];
        let mut part = |part: &str, range: [u32; 2]| {
            of_groups(e, &format!("l{l}.delta.{part}"), &format!("{hf}.in_proj_qkvz"), rows, range, x)
        };
        Ok([
            part("q", [0, self.key])?,
            part("k", [self.key, self.key])?,
            part("v", [2 * self.key, of_key])?,
            part("gate", [2 * self.key + of_key, of_key])?,
        ])
    }

    /// The same where one tensor has all queries, then all keys, then all values, and another the gates.
    fn project(&self, e: &mut ModelBuilder<'_>, l: u32, hf: &str, x: ValueId) -> Result<[ValueId; 4], ModelError> {
        let (keys, values) = (self.key_heads * self.key, self.heads * self.value);
        let (name, qkv) = (format!("l{l}.delta"), format!("{hf}.in_proj_qkv.weight"));
        let of = [2 * keys + values, self.hidden];
        let mut part = |part: &str, first: u32| {
            let rows = e.rows_of(&qkv, &of, first, keys)?;
            e.project(&format!("{name}.{part}"), x, [keys, self.hidden], rows, None)
        };
        let (q, k) = (part("q", 0)?, part("k", keys)?);
        let v = self.value_rows(e, &qkv, &of, 2 * keys, self.value)?;
        let v = e.project(&format!("{name}.v"), x, [values, self.hidden], v, None)?;
        let gate = self.value_rows(e, &format!("{hf}.in_proj_z.weight"), &[values, self.hidden], 0, self.value)?;
        let gate = e.project(&format!("{name}.gate"), x, [values, self.hidden], gate, None)?;
        Ok([q, k, v, gate])
    }

    /// `width` rows of each value head, from row `first` on, in the order of their key heads.
    fn value_rows(
        &self,
        e: &ModelBuilder<'_>,
        hf: &str,
        of: &[u32],
        first: u32,
        width: u32,
    ) -> Result<WeightView, ModelError> {
        let row: u32 = of[1..].iter().product();
        let Some(tiled) = self.tiled else { return e.rows_of(hf, of, first, self.heads * width) };
        let (shape, strides) = tiled.view(width, row);
        let (shape, strides) = ([&shape[..], &of[1..]].concat(), [&strides[..], &vec![1; of.len() - 1]].concat());
        e.part(hf, of, first * row, &shape, &strides)
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
        let tiled = self.tiled.filter(|_| part == "v").map(|tiled| (tiled, self.value));
        let conv = CausalConv { of, first, channels, taps: self.taps, bias: false, tiled };
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
        let name = format!("l{l}.delta");
        let [beta, step] = self.beta_and_step(e, l, hf, x)?;
        let beta = e.op(&format!("{name}.beta"), Map::of(Func::Sigmoid), &[beta])?;
        let bias = self.value_rows(e, &format!("{hf}.dt_bias"), &[self.heads], 0, 1)?;
        let bias = e.weight(&format!("{name}.step.b"), &[self.heads], vec![bias])?;
        let step = e.add(&format!("{name}.step.sum"), step, bias)?;
        let step = softplus(e, &format!("{name}.step"), step)?;
        let a = self.value_rows(e, &format!("{hf}.A_log"), &[self.heads], 0, 1)?;
        let a = e.weight(&format!("{name}.a"), &[self.heads], vec![a])?;
        Ok([e.op(&format!("{name}.decay"), decay(e)?, &[step, a])?, beta])
    }

    /// What the correction and the time step are made of, from one tensor that is ordered by key head or from two.
    fn beta_and_step(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        hf: &str,
        x: ValueId,
    ) -> Result<[ValueId; 2], ModelError> {
        let (name, each) = (format!("l{l}.delta"), self.heads / self.key_heads);
        let tensor = format!("{hf}.in_proj_ba");
        if e.has(&format!("{tensor}.weight")) {
            let rows = [self.key_heads, 2 * each, self.hidden];
            let beta = of_groups(e, &format!("{name}.beta.in"), &tensor, rows, [0, each], x)?;
            return Ok([beta, of_groups(e, &format!("{name}.step.in"), &tensor, rows, [each, each], x)?]);
        }
        let shape = [self.heads, self.hidden];
        let mut one = |part: &str, tensor: &str| {
            let rows = self.value_rows(e, &format!("{hf}.{tensor}.weight"), &shape, 0, 1)?;
            e.project(&format!("{name}.{part}.in"), x, shape, rows, None)
        };
        Ok([one("beta", "in_proj_b")?, one("step", "in_proj_a")?])
    }
}

/// Rows `first` to `first + n` of each of `count` groups of `every` rows of a tensor, times `x`.
pub(super) fn of_groups(
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
