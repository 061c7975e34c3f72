//! How a forward pass runs.

use crate::options::EngineOptions;
use yirage_ir::Format;
use yirage_plancache::CacheOptions;

/// Options of a forward pass.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ForwardOptions {
    /// Format of cached keys and values, as [`EngineOptions::kv`].
    pub kv: Option<Format>,
    /// Positions a sequence may have, as [`EngineOptions::context`].
    pub context: Option<u32>,
    /// How plans are made and kept, precision included.
    pub plans: CacheOptions,
    /// What every call gives beside the logits.
    pub beside: BesideLogits,
}

/// Values of a model that a call gives beside the logits ([`ForwardStep::beside`](crate::ForwardStep)). They leave the
/// device, so that nothing is fused over them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BesideLogits {
    /// None.
    #[default]
    Nothing,
    /// The hidden state behind each layer, f32 `[tokens, width]`.
    Layers,
    /// What stored matrices are multiplied with: the values of [`Forward::matmul_inputs`](crate::Forward::matmul_inputs), in
    /// their order.
    MatmulInputs,
}

impl ForwardOptions {
    /// What the loader of engines takes.
    pub(super) fn engine(&self) -> EngineOptions {
        EngineOptions {
            precision: self.plans.precision,
            kv: self.kv,
            context: self.context,
            ..EngineOptions::default()
        }
    }
}
