//! Feed-forward parts: gated and plain, dense and of experts.

use super::emit::ModelBuilder;
use crate::error::ModelError;
use yirage_ir::ValueId;
use yirage_ir::expr::Func;
use yirage_ir::op::Map;

/// The gate that the configuration's activation means.
pub(super) fn gate(e: &ModelBuilder<'_>) -> Result<Func, ModelError> {
    function(e, "hidden_act", e.config.str("hidden_act")?)
}

/// The function called `name`, which the configuration says under `key`.
pub(super) fn function(e: &ModelBuilder<'_>, key: &str, name: &str) -> Result<Func, ModelError> {
    match name {
        "silu" | "swish" => Ok(Func::Silu),
        "gelu_pytorch_tanh" | "gelu_new" | "gelu_fast" => Ok(Func::GeluTanh),
        "gelu" => Ok(Func::GeluErf),
        other => Err(ModelError::Unsupported {
            what: format!("the activation {other:?}"),
            why: format!(
                "{}: {} names it; silu, gelu and its tanh form are known",
                e.config.file(),
                e.config.called(key)
            ),
        }),
    }
}

/// The function of a plain feed-forward part.
pub(super) fn activation(e: &ModelBuilder<'_>) -> Result<Func, ModelError> {
    match e.config.str("hidden_act")? {
        "relu" => Ok(Func::Relu),
        _ => gate(e),
    }
}

/// A gated feed-forward part `down(gate(x) * up(x))`.
#[derive(Clone, Copy)]
pub(super) struct GatedMlp {
    pub(super) hidden: u32,
    pub(super) inner: u32,
    pub(super) gate: Func,
    pub(super) bias: bool,
}

impl GatedMlp {
    /// From the usual keys.
    pub(super) fn read(e: &ModelBuilder<'_>, bias: bool) -> Result<GatedMlp, ModelError> {
        let (hidden, inner) = (e.size("hidden_size")?, e.size("intermediate_size")?);
        e.product(inner, 2, "intermediate_size")?;
        Ok(GatedMlp { hidden, inner, gate: gate(e)?, bias })
    }

    /// Emits layer `l`'s under the usual names.
    pub(super) fn emit_layer(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        self.emit(e, &format!("l{l}.ffn"), &format!("model.layers.{l}.mlp"), x)
    }

    /// Emits it under the name `name` from the tensors under `hf`.
    pub(super) fn emit(
        &self,
        e: &mut ModelBuilder<'_>,
        name: &str,
        hf: &str,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let mut half = |part: &str| {
            let hf = format!("{hf}.{part}_proj");
            let bias = e.biased(self.bias, &format!("{hf}.bias"));
            e.linear(&format!("{name}.{part}"), &hf, x, [self.inner, self.hidden], bias)
        };
        let (gate, up) = (half("gate")?, half("up")?);
        self.finish(e, name, hf, gate, up)
    }

    /// Emits layer `l`'s where one tensor has the rows of gate and then those of up.
    pub(super) fn emit_fused_layer(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (name, hf) = (format!("l{l}.ffn"), format!("model.layers.{l}.mlp"));
        let fused = format!("{hf}.gate_up_proj.weight");
        let mut half = |part: &str, first: u32| {
            let rows = e.rows_of(&fused, &[2 * self.inner, self.hidden], first, self.inner)?;
            e.project(&format!("{name}.{part}"), x, [self.inner, self.hidden], rows, None)
        };
        let (gate, up) = (half("gate", 0)?, half("up", self.inner)?);
        self.finish(e, &name, &hf, gate, up)
    }

    /// What follows gate and up.
    pub(super) fn finish(
        &self,
        e: &mut ModelBuilder<'_>,
        name: &str,
        hf: &str,
        gate: ValueId,
        up: ValueId,
    ) -> Result<ValueId, ModelError> {
        let act = e.op(&format!("{name}.act"), Map::gated(self.gate), &[gate, up])?;
        let hf = format!("{hf}.down_proj");
        let bias = e.biased(self.bias, &format!("{hf}.bias"));
        e.linear(&format!("{name}.down"), &hf, act, [self.hidden, self.inner], bias)
    }
}
