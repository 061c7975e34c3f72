//! What can be asked of an engine: the model, memory, executors, counters, notices.

use super::core::Engine;
use super::facts::ModelFacts;
use crate::kv::KvManager;
use crate::load::LoadProgressFn;
use crate::memory::LoadBytes;
use crate::packed::{Background, Notice};
use crate::plans::PlanCounts;
use crate::scheduler::{SchedulerStats, SeqId};
use crate::speculate::{DraftModel, StepCost};
use yirage_hal::{MemoryReport, SelectionReason};
use yirage_ir::Dims;
use yirage_plan::ExecutorKind;
use yirage_plan::work::{SequenceSpan, Work};

/// What an engine is busy with at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Occupancy {
    /// Sequences that hold blocks of the cache.
    pub running: usize,
    /// Sequences that wait to be admitted, or to be admitted again.
    pub waiting: usize,
    /// The share of the cache's blocks that sequences hold, from 0 to 1; of several groups, that of the fullest.
    pub cache_usage: f64,
}

impl Engine {
    /// What was loaded.
    pub fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    /// Memory that the draft model takes, where there is one.
    pub fn draft_bytes(&self) -> Option<LoadBytes> {
        self.speculator.model().map(DraftModel::bytes)
    }

    /// Memory the device holds.
    pub fn memory(&self) -> MemoryReport {
        self.device.memory()
    }

    /// For each plan: the sizes of the largest step it takes, its executor now, and why it is that one.
    pub fn executors(&self) -> Vec<(Dims, ExecutorKind, SelectionReason)> {
        self.runner.executors()
    }

    /// What a step over these sequences has to read and compute at least.
    pub fn work(&self, spans: &[SequenceSpan]) -> Work {
        self.costs.step(spans)
    }

    /// The cache's bookkeeping: blocks in use, kept for later prompts, free.
    pub fn kv(&self) -> &KvManager {
        self.scheduler.kv()
    }

    /// Counters of the scheduler.
    pub fn stats(&self) -> SchedulerStats {
        self.scheduler.stats()
    }

    /// The sequences that the last [`Engine::step`] admitted for the first time, once: until then they waited.
    pub fn take_admitted(&mut self) -> Vec<SeqId> {
        self.scheduler.take_admitted()
    }

    /// What the engine is busy with.
    pub fn occupancy(&self) -> Occupancy {
        let kv = self.scheduler.kv();
        let share = |group| kv.blocks_in_use(group) as f64 / kv.total_blocks(group).max(1) as f64;
        Occupancy {
            running: self.scheduler.running(),
            waiting: self.scheduler.waiting(),
            cache_usage: (0..kv.groups().len()).map(share).fold(0.0, f64::max),
        }
    }

    /// What decoding steps of each size took so far, where tokens are guessed: the cost of verifying.
    pub fn step_costs(&self) -> Vec<StepCost> {
        self.speculator.measured()
    }

    /// What became known of the kernels' variant, the repacked weights and the kept plans since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        let plans = self.sampler.plans().take_notices().into_iter().map(|told| Notice::Plan(told.to_string()));
        let weights = self.background.as_ref().map_or_else(Vec::new, Background::notices);
        let told = std::mem::take(&mut self.notices);
        let executors = self.runner.take_left_out().into_iter().map(Notice::LeftOut);
        told.into_iter().chain(weights).chain(plans).chain(executors).collect()
    }

    /// Where the plans of the model and of sampling came from so far.
    pub fn plan_counts(&self) -> PlanCounts {
        self.sampler.plans().counts()
    }

    /// Finishes writing the repacked weights for the next start, if that was begun or is still to do; what this meets is
    /// among the [`Engine::notices`]. An engine dropped without this leaves them unwritten, unless that was done by
    /// itself beside the steps. `progress` gets the bytes written, and of all.
    pub fn settle(&mut self, progress: LoadProgressFn) {
        if let Some(background) = &mut self.background {
            background.settle(progress);
        }
    }
}
