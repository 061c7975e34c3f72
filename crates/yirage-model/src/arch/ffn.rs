//! Feed-forward parts: gated and plain, dense and of experts.

use super::emit::Emit;
use crate::error::ModelError;
use yirage_ir::ValueId;
use yirage_ir::op::{Glu, GluKind, UnaryKind};

/// The gate that the configuration's activation means.
pub(super) fn gate(e: &Emit<'_>) -> Result<GluKind, ModelError> {
    match e.config.str("hidden_act")? {
        "silu" | "swish" => Ok(GluKind::Silu),
        "gelu_pytorch_tanh" | "gelu_new" | "gelu_fast" => Ok(GluKind::GeluTanh),
        "gelu" => Ok(GluKind::GeluErf),
        other => Err(unknown(e, other)),
    }
}

/// The function of a plain feed-forward part.
pub(super) fn activation(e: &Emit<'_>) -> Result<UnaryKind, ModelError> {
    match e.config.str("hidden_act")? {
        "silu" | "swish" => Ok(UnaryKind::Silu),
        "gelu_pytorch_tanh" | "gelu_new" | "gelu_fast" => Ok(UnaryKind::GeluTanh),
        "gelu" => Ok(UnaryKind::GeluErf),
        "relu" => Ok(UnaryKind::Relu),
        other => Err(unknown(e, other)),
    }
}

fn unknown(e: &Emit<'_>, name: &str) -> ModelError {
    ModelError::Unsupported {
        what: format!("the activation {name:?}"),
        why: format!("{}: hidden_act names it; silu, gelu and its tanh form are known", e.config.file()),
    }
}

/// A gated feed-forward part `down(gate(x) * up(x))` with tensors under `hf`.
pub(super) struct Gated {
    pub(super) hidden: u32,
    pub(super) inner: u32,
    pub(super) kind: GluKind,
    pub(super) bias: bool,
}

impl Gated {
    /// Emits it under the name `name`.
    pub(super) fn emit(&self, e: &mut Emit<'_>, name: &str, hf: &str, x: ValueId) -> Result<ValueId, ModelError> {
        let mut linear = |part: &str, x: ValueId, shape: [u32; 2]| {
            let hf = format!("{hf}.{part}_proj");
            let bias = e.biased(self.bias, &format!("{hf}.bias"));
            e.linear(&format!("{name}.{part}"), &hf, x, shape, bias)
        };
        let gate = linear("gate", x, [self.inner, self.hidden])?;
        let up = linear("up", x, [self.inner, self.hidden])?;
        let act = e.op(&format!("{name}.act"), Glu { kind: self.kind }, &[gate, up])?;
        let hf = format!("{hf}.down_proj");
        let bias = e.biased(self.bias, &format!("{hf}.bias"));
        e.linear(&format!("{name}.down"), &hf, act, [self.hidden, self.inner], bias)
    }
}
