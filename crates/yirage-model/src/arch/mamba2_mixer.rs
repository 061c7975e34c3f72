//! Mamba-2 (Dao and Gu, 2024): a short convolution, and a selective state space model behind it that a gate closes.

use super::emit::ModelBuilder;
use super::recurrent_parts::{by_group, decay, expression, softplus};
use super::short_conv::CausalConv;
use crate::error::ModelError;
use serde_json::Value;
use yirage_ir::expr::Func;
use yirage_ir::op::{Map, RmsNorm, SsmScan};
use yirage_ir::{F32, ValueId};

/// The keys of a family's configuration.
pub(super) struct MixerKeys {
    pub(super) heads: &'static str,
    pub(super) head: &'static str,
    pub(super) state: &'static str,
    pub(super) groups: &'static str,
    pub(super) taps: &'static str,
    pub(super) conv_bias: &'static str,
    pub(super) bias: &'static str,
    pub(super) eps: &'static str,
    /// The least time step, where that is what the family's code heeds and not a pair of limits.
    pub(super) least_step: Option<&'static str>,
}

/// The sizes of a layer.
pub(super) struct Mamba2Mixer {
    hidden: u32,
    heads: u32,
    /// Channels of all heads.
    inner: u32,
    groups: u32,
    /// Elements of a channel's state.
    n: u32,
    taps: u32,
    conv_bias: bool,
    bias: bool,
    eps: f32,
    /// The least and the largest time step, where they are stated and bound anything.
    limits: Option<[f32; 2]>,
}

impl Mamba2Mixer {
    pub(super) fn read(e: &ModelBuilder<'_>, keys: &MixerKeys) -> Result<Mamba2Mixer, ModelError> {
        let (hidden, heads, groups) = (e.size("hidden_size")?, e.size(keys.heads)?, e.size(keys.groups)?);
        let (head, n) = (e.size(keys.head)?, e.size(keys.state)?);
        if !heads.is_multiple_of(groups) {
            return Err(e.config.invalid(keys.groups, &format!("a divisor of {heads} heads")));
        }
        let (inner, of_groups) = (e.product(heads, head, keys.heads)?, e.product(groups, n, keys.groups)?);
        // The rows of the whole input projection.
        e.product(2, inner + 2 * of_groups + heads, keys.heads)?;
        Ok(Mamba2Mixer {
            hidden,
            heads,
            inner,
            groups,
            n,
            taps: e.size(keys.taps)?,
            conv_bias: e.config.bool_or(keys.conv_bias, true)?,
            bias: e.config.bool_or(keys.bias, false)?,
            eps: e.eps(keys.eps)?,
            limits: time_step_limits(e, keys)?,
        })
    }

    /// Channels that are convolved: those of the heads, and `b` and `c` of all groups.
    fn convolved(&self) -> u32 {
        self.inner + 2 * self.groups * self.n
    }

    /// Emits layer `l`'s from the tensors under `hf`.
    pub(super) fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, hf: &str, x: ValueId) -> Result<ValueId, ModelError> {
        let (inner, of_groups, heads) = (self.inner, self.groups * self.n, self.heads);
        let gate = self.project(e, l, hf, "gate", [0, inner], x)?;
        let given = self.convolve(e, l, hf, "x", [0, inner], x)?;
        let b = self.convolve(e, l, hf, "b", [inner, of_groups], x)?;
        let c = self.convolve(e, l, hf, "c", [inner + of_groups, of_groups], x)?;
        let dt = self.project(e, l, hf, "dt", [inner + self.convolved(), heads], x)?;
        let dt = self.time_step(e, l, hf, dt)?;
        let a = column(e, &format!("l{l}.ssm.a"), &format!("{hf}.A_log"), heads)?;
        let decay = e.op(&format!("l{l}.ssm.decay"), decay(e)?, &[dt, a])?;
        let [state, table] = e.recurrent_state(&format!("{l}.ssm"), [self.n, inner])?;
        let skip = column(e, &format!("l{l}.ssm.d"), &format!("{hf}.D"), heads)?;
        let (positions, seqs) = (e.inputs.positions, e.inputs.seqs);
        let ins = [state, given, dt, decay, b, c, positions, seqs, table, skip];
        let op = SsmScan { heads, groups: self.groups, block_positions: e.kv_block() };
        let y = e.ops(&[&format!("l{l}.ssm.y"), &format!("l{l}.ssm.state")], op, &ins)?[0];
        let y = e.op(&format!("l{l}.ssm.gated"), Map::gated(Func::Silu), &[gate, y])?;
        let y = self.normalise(e, l, hf, y)?;
        let bias = e.biased(self.bias, &format!("{hf}.out_proj.bias"));
        e.linear(&format!("l{l}.ssm.o"), &format!("{hf}.out_proj"), y, [self.hidden, inner], bias)
    }

    /// Some rows of the input projection.
    fn project(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        hf: &str,
        part: &str,
        [first, n]: [u32; 2],
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let whole = [self.inner + self.convolved() + self.heads, self.hidden];
        let w = e.rows_of(&format!("{hf}.in_proj.weight"), &whole, first, n)?;
        let bias = e.biased(self.bias, &format!("{hf}.in_proj.bias"));
        let b = bias.then(|| e.rows_of(&format!("{hf}.in_proj.bias"), &whole[..1], first, n)).transpose()?;
        e.project(&format!("l{l}.ssm.{part}"), x, [n, self.hidden], w, b)
    }

    /// Some of the channels that are convolved.
    fn convolve(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        hf: &str,
        part: &str,
        [first, channels]: [u32; 2],
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let x = self.project(e, l, hf, part, [self.inner + first, channels], x)?;
        let conv =
            CausalConv { of: self.convolved(), first, channels, taps: self.taps, bias: self.conv_bias, tiled: None };
        let (name, state) = (format!("l{l}.ssm.{part}.conv"), format!("{l}.{part}"));
        let x = conv.emit(e, &name, &state, &format!("{hf}.conv1d"), x)?;
        e.op(&format!("{name}.act"), Map::of(Func::Silu), &[x])
    }

    fn time_step(&self, e: &mut ModelBuilder<'_>, l: u32, hf: &str, dt: ValueId) -> Result<ValueId, ModelError> {
        let bias = e.tensor(&format!("l{l}.ssm.step.b"), &format!("{hf}.dt_bias"), &[self.heads])?;
        let dt = e.add(&format!("l{l}.ssm.dt.sum"), dt, bias)?;
        let dt = softplus(e, &format!("l{l}.ssm.dt.step"), dt)?;
        match self.limits {
            Some([low, high]) => {
                e.op(&format!("l{l}.ssm.dt.limited"), expression(&format!("clamp(x0, {low:?}, {high:?})"))?, &[dt])
            }
            None => Ok(dt),
        }
    }

    /// RMS norm of each group's channels, times a factor of each channel.
    fn normalise(&self, e: &mut ModelBuilder<'_>, l: u32, hf: &str, y: ValueId) -> Result<ValueId, ModelError> {
        let name = format!("l{l}.ssm.norm");
        let groups = [self.groups, self.inner / self.groups];
        let stored = if e.is_gguf() { &groups[..] } else { &[self.inner] };
        let view = e.whole(&format!("{hf}.norm.weight"), stored)?;
        let w = e.weight(&format!("{name}.w"), &[self.inner], vec![view])?;
        if self.groups == 1 {
            return e.op(&name, RmsNorm { eps: F32(self.eps), width: self.inner, unit_offset: false }, &[y, w]);
        }
        let text = format!("mul(x0, rsqrt(add(x1, {:?})))", self.eps);
        let scaled = by_group(e, &format!("{name}.scaled"), y, groups, &text)?;
        e.op(&name, Map::of(Func::Mul), &[scaled, w])
    }
}

/// One number of each head, which GGUF files hold as a column.
fn column(e: &mut ModelBuilder<'_>, name: &str, hf: &str, heads: u32) -> Result<ValueId, ModelError> {
    let stored: &[u32] = if e.is_gguf() { &[heads, 1] } else { &[heads] };
    let view = e.whole(hf, stored)?;
    e.weight(name, &[heads], vec![view])
}

/// What `time_step_limit` bounds; nothing where it is from 0 to infinity, which softplus keeps to anyway.
fn time_step_limits(e: &ModelBuilder<'_>, keys: &MixerKeys) -> Result<Option<[f32; 2]>, ModelError> {
    let wrong = || e.config.invalid("time_step_limit", "two numbers, the smaller first; the second may be infinity");
    if let Some(key) = keys.least_step {
        let least = e.positive(key, 0.0)? as f32;
        return Ok((least > 0.0).then_some([least, f32::MAX]));
    }
    let Some(stated) = e.config.get("time_step_limit").filter(|v| !v.is_null()) else { return Ok(None) };
    // JSON has no infinity; transformers writes an object with its name.
    let number = |v: &Value| match v.get("__float__").and_then(Value::as_str) {
        Some("Infinity") => Some(f64::INFINITY),
        _ => v.as_f64(),
    };
    let [low, high] = stated.as_array().map(Vec::as_slice).ok_or_else(wrong)? else { return Err(wrong()) };
    let (low, high) = (number(low).ok_or_else(wrong)?, number(high).ok_or_else(wrong)?);
    if low < 0.0 || low > high {
        return Err(wrong());
    }
    if low == 0.0 && high.is_infinite() {
        return Ok(None);
    }
    Ok(Some([low as f32, high.min(f64::from(f32::MAX)) as f32]))
}
