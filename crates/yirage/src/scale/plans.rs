//! What each of so many ranks does in a step of a model, from the plan that it would run.

use crate::bench::BenchTest;
use crate::commands::bench::fit;
use crate::failure::CliFailure;
use crate::settings::EngineSettings;
use serde::Serialize;
use std::sync::Arc;
use yirage_advisor::scale::{RankProducts, RankStep};
use yirage_engine::{RankDivision, plan_step};
use yirage_explain::{PlanTimings, StoredSizes};
use yirage_hal::{Device, HalError, Profile};
use yirage_ir::{DType, Dims, Format, ValueSource};
use yirage_model::arch::{self, BuildOptions, Model, ModelOutput, PipelineStage};
use yirage_model::{Checkpoint, RawConfig};
use yirage_plan::work::{Costs, ResidentSizes, SequenceSpan};
use yirage_plan::{ExpertDivision, VerifiedPlan};
use yirage_ranks::PlannedRank;

/// Most bytes of the products that are measured, of all ranks together: more than caches hold.
const MOST_BYTES: f64 = (512u64 << 20) as f64;

/// Tokens of a step that begins sequences.
pub(crate) const CHUNK: u32 = 512;

/// A step in which each of so many sequences gets one token behind so many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub(crate) struct ScaleStep {
    /// Sequences.
    pub(crate) sequences: u32,
    /// Positions that each has in the cache.
    pub(crate) depth: u32,
}

impl ScaleStep {
    /// So many of them, one behind the other.
    pub(crate) fn test(self, generate: u32) -> BenchTest {
        BenchTest { prompt: 0, generate, depth: self.depth, sequences: self.sequences }
    }
}

/// The plans of a checkpoint's ranks, for runs of so many steps.
pub(crate) struct RankPlans<'a> {
    pub(crate) generate: u32,
    pub(crate) checkpoint: &'a Checkpoint,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) settings: EngineSettings,
}

/// What the steps of a plan took.
pub(crate) struct PlanShares {
    /// The share of those that multiply or attend.
    pub(crate) working: f64,
    /// Seconds of all of them together.
    pub(crate) seconds: f64,
}

/// How a model can be cut into stages.
pub(crate) enum StageShape {
    /// Between its layers.
    Layers {
        /// How many.
        layers: u32,
        /// Elements of a row that a stage hands on.
        width: u32,
    },
    /// Not at all.
    Whole {
        /// Why.
        why: String,
    },
}

/// What one of so many ranks does in a step.
pub(crate) struct PlannedRankStep {
    /// What its plan says.
    pub(crate) step: RankStep,
    /// Bytes that it holds: weights, and the caches of all sequences.
    pub(crate) resident: f64,
    sizes: StoredSizes,
    spans: Vec<SequenceSpan>,
    dims: Dims,
    plan: VerifiedPlan,
}

impl RankPlans<'_> {
    /// Whether so many ranks can share every layer.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub(crate) fn can_share(&self, ranks: u32) -> Result<bool, CliFailure> {
        Ok(RankDivision::of(self.checkpoint, ranks, ExpertDivision::Rows)?.is_ok())
    }

    /// How the model can be cut into stages.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub(crate) fn stages(&self) -> Result<StageShape, CliFailure> {
        let config = RawConfig::load(self.checkpoint)?;
        let model = arch::build(self.checkpoint, &config, BuildOptions::plain(1))?;
        let layers = |stages: &[PipelineStage]| stages.iter().map(|stage| stage.layers.end).max();
        Ok(match model.stages(2).as_deref() {
            Ok(stages @ [PipelineStage { model: Model { output: ModelOutput::Hidden { width }, .. }, .. }, ..]) => {
                StageShape::Layers { layers: layers(stages).unwrap_or(1), width: *width }
            }
            Ok(_) => StageShape::Whole { why: format!("{} hands no rows from layer to layer", model.name) },
            Err(why) => StageShape::Whole { why: why.to_string() },
        })
    }

    /// What one of so many ranks does.
    ///
    /// # Errors
    /// A model that has no plan on the device, or none for so many ranks.
    pub(crate) fn step(&self, ranks: u32, step: ScaleStep) -> Result<PlannedRankStep, CliFailure> {
        let ScaleStep { sequences, depth } = step;
        let mut options = self.settings.options.clone();
        fit(&mut options, CHUNK, &[step.test(self.generate)]);
        // Each token of the run is a step behind one position more.
        let depth = depth.max(1) + self.generate / 2;
        let rank = PlannedRank::new(self.device.clone(), ranks, ExpertDivision::Rows)?;
        let planned = plan_step(self.checkpoint, &rank, &options, sequences, &mut Vec::new())?;
        let sizes = StoredSizes::new(&rank, &planned.plan)?;
        let spans = vec![SequenceSpan { start: depth, tokens: 1, rows: 1 }; sequences as usize];
        let dims = Dims { tokens: sequences, seqs: sequences, rows: sequences, ..planned.plan.bucket };
        let step = RankStep::of(&planned.plan.graph, &sizes, &spans, &dims);
        let plan = planned.plan;
        let mut resident = 0.0;
        for entry in &plan.weights.entries {
            resident += rank.weight_bytes(entry)? as f64;
        }
        let positions = f64::from(sequences) * f64::from(depth + 1);
        for id in plan.graph.inputs_of(ValueSource::KvCache) {
            resident += sizes.position(&plan.graph.value(id).name) * positions;
        }
        Ok(PlannedRankStep { step, resident, sizes, spans, dims, plan })
    }
}

impl PlannedRankStep {
    /// Products like those of the step, on each of so many ranks: of the format that most bytes of its weights are in, and as many
    /// and as large as what the rank reads between two collectives (of one rank, as its matrices), within a bound.
    ///
    /// # Errors
    /// A model without matrices.
    pub(crate) fn products(&self, ranks: u32, tokens: u32) -> Result<RankProducts, CliFailure> {
        let none = || {
            let why = "its plan has no product with stored weights".into();
            HalError::Unsupported { what: "the time of a step of this model on several ranks".into(), why }
        };
        let bytes_of = |of: Format| self.matrices().filter(|m| m.0 == of).map(|(_, bytes)| bytes).sum::<usize>();
        let format = self.matrices().map(|(format, _)| format).max_by_key(|&format| bytes_of(format));
        let format = format.ok_or_else(none)?;
        let count = match ranks {
            1 => self.matrices().count(),
            _ => self.step.collectives.len(),
        };
        let bytes = self.step.work.weight_bytes / count.max(1) as f64;
        // Each reads the rows of all ranks.
        let info = format.info();
        let elements = bytes / (info.bytes as f64 / info.block as f64) / f64::from(ranks);
        let rows = (elements.sqrt() as u32).next_multiple_of(info.block.max(32) as u32).max(32);
        let most = (MOST_BYTES / f64::from(ranks) / bytes).max(1.0);
        let count = (count as f64).min(most) as u32;
        Ok(RankProducts { format, rows, count, tokens, precision: self.plan.precision })
    }

    /// What share of a step on one rank its products and its attention take, and the seconds of all steps of the plan, by a profile of
    /// such steps; nothing where it has none of this plan.
    pub(crate) fn shares(&self, profile: &Profile) -> Option<PlanShares> {
        let timings = PlanTimings::new(&self.plan, &self.dims, profile)?;
        let (mut working, mut all) = (0.0, 0.0);
        for (step, seconds) in self.plan.steps.iter().zip(&timings.kernels) {
            let node = &self.plan.graph.nodes[step.node as usize];
            let seconds = seconds.unwrap_or_default();
            all += seconds;
            if Costs::of_node(&self.plan.graph, node, &self.sizes).step(&self.spans).ops() > 0.0 {
                working += seconds;
            }
        }
        (all > 0.0).then(|| PlanShares { working: working / all, seconds: timings.step_seconds })
    }

    /// Format and bytes of each weight that is a matrix.
    fn matrices(&self) -> impl Iterator<Item = (Format, usize)> {
        self.plan.weights.entries.iter().filter_map(|entry| match (entry.ty.dtype, entry.ty.shape.len()) {
            (DType::Stored(format), 2..) => Some((format, entry.ty.bytes(&Dims::default()))),
            _ => None,
        })
    }
}
