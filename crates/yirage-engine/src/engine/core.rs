//! The parts of an engine.

use super::bound_kv_cache::BoundKvCache;
use super::event::Event;
use super::facts::ModelFacts;
use super::request_state::RequestState;
use super::submitted_step::SubmittedStep;
use crate::embedded::EmbeddedTokens;
use crate::loaded_stage::LoadedStage;
use crate::options::EngineOptions;
use crate::pace::StepPacer;
use crate::packed::{Background, Notice};
use crate::runner::Runner;
use crate::sampling::Sampler;
use crate::scheduler::{Scheduler, SeqId};
use crate::speculate::Speculator;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use yirage_hal::Device;
use yirage_model::rope::Dynamic;
use yirage_packed::PackedEntry as KeptEntry;
use yirage_plan::work::Costs;

/// An engine: one model on one device, or on a pipeline of them.
///
/// [`Engine::add`] queues requests, [`Engine::step`] runs one step and reports what became known. Output does not
/// depend on what else runs: the same request gives the same tokens alone, in any batch, with any chunk size, with and
/// without guesses.
pub struct Engine {
    pub(super) facts: ModelFacts,
    pub(super) device: Arc<dyn Device>,
    /// What each device of the model has, in the order of its layers.
    pub(super) stages: Vec<LoadedStage>,
    pub(super) costs: Costs,
    pub(super) scheduler: Scheduler,
    pub(super) runner: Runner,
    /// Where keys, values and states of layers lie.
    pub(super) kv_caches: Vec<BoundKvCache>,
    pub(super) sampler: Sampler,
    pub(super) requests: HashMap<SeqId, RequestState>,
    pub(super) embedded: EmbeddedTokens,
    /// Width of the rows that prompts may have in the place of tokens' embeddings.
    pub(super) embedded_width: Option<u32>,
    pub(super) dynamic_rope: Option<Dynamic>,
    /// The step that was submitted behind the last one.
    pub(super) launched: Option<SubmittedStep>,
    /// Events that wait for the next step.
    pub(super) pending_events: Vec<Event>,
    pub(super) speculator: Speculator,
    /// What keeps steps within a time, where they have to be.
    pub(super) pace: Option<StepPacer>,
    /// When the last step was over.
    pub(super) over: Option<Instant>,
    pub(super) options: EngineOptions,
    /// The entry that repacked weights are mapped from.
    pub(super) packed_entry: Option<KeptEntry>,
    /// Repacked weights that are written once the first step is over.
    pub(super) background: Option<Background>,
    /// What was told while the kernels' variant was chosen, and nobody has heard yet.
    pub(super) notices: Vec<Notice>,
}
