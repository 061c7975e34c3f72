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
    /// Whether every call gives the hidden state behind each layer as well ([`ForwardStep::layers`](crate::ForwardStep)). They
    /// leave the device, so that nothing is fused over the end of a layer.
    pub layers: bool,
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
