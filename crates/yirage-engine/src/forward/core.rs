//! The parts of a forward pass.

use super::kv_reservation::KvReservation;
use super::options::ForwardOptions;
use crate::sampling::Sampler;
use std::sync::Arc;
use yirage_hal::Device;
use yirage_ir::Format;
use yirage_model::arch::{KvCacheSpec, MatmulInputs, Model};
use yirage_plan::WeightPlan;
use yirage_plancache::{PlanCache, ResidentWeights};

/// A model on a device whose forward pass is called with rows of tokens.
pub struct Forward {
    pub(super) device: Arc<dyn Device>,
    pub(super) plans: Arc<PlanCache>,
    pub(super) options: ForwardOptions,
    pub(super) model: Model,
    pub(super) weights: WeightPlan,
    /// Positions that the model's tables have.
    pub(super) opened: u32,
    /// Positions a sequence may have.
    pub(super) context: u32,
    pub(super) kv: Format,
    pub(super) ties_head: bool,
    pub(super) loaded_weights: Option<ResidentWeights>,
    pub(super) reservation: Option<KvReservation>,
    pub(super) sampler: Option<(usize, Sampler)>,
}

impl Forward {
    /// The plans, whose statistics may be asked for while something is computed.
    pub fn plans(&self) -> &Arc<PlanCache> {
        &self.plans
    }

    /// The architecture: `model_type` of its configuration.
    pub fn architecture(&self) -> &str {
        &self.model.name
    }

    /// Tokens that the model knows; the width of its logits.
    pub fn vocabulary(&self) -> u32 {
        self.model.vocab_size
    }

    /// What the model's stored matrices are multiplied with.
    pub fn matmul_inputs(&self) -> MatmulInputs {
        self.model.matmul_inputs()
    }

    /// Positions a sequence may have.
    pub fn context(&self) -> u32 {
        self.context
    }

    /// Whether layers keep recurrent states, which are there at the last cached position and at the ends of blocks alone.
    pub(super) fn is_recurrent(&self) -> bool {
        self.model.groups.contains(&KvCacheSpec::Recurrent)
    }

    /// Format of cached keys and values.
    pub fn kv(&self) -> Format {
        self.kv
    }

    /// Whether the weights are there.
    pub fn has_weights(&self) -> bool {
        self.loaded_weights.is_some()
    }

    /// Cached positions of each sequence that there is room for.
    pub fn cached(&self) -> &[u32] {
        self.reservation.as_ref().map_or(&[], |room| &room.lengths)
    }
}
