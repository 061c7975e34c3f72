//! What each of so many ranks does in a step of a model, from the plan that it would run.

use crate::failure::CliFailure;
use crate::settings::EngineSettings;
use serde::Serialize;
use std::sync::Arc;
use yirage_advisor::scale::{ProductSizes, RankStep};
use yirage_engine::{CacheSize, RankDivision, Speculation, plan_step};
use yirage_explain::StoredSizes;
use yirage_hal::{Device, HalError};
use yirage_ir::{DType, Dims, Format, ValueSource};
use yirage_model::arch::{self, BuildOptions, Model, ModelOutput, PipelineStage};
use yirage_model::{Checkpoint, RawConfig};
use yirage_plan::work::{ResidentSizes, SequenceSpan};
use yirage_plan::{ExpertDivision, VerifiedPlan};
use yirage_ranks::PlannedRank;

/// Most bytes of the products that are measured, of all ranks together: more than caches hold.
const MOST_BYTES: f64 = (512u64 << 20) as f64;

/// A step in which each of so many sequences gets one token behind so many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct ScaleStep {
    /// Sequences.
    pub(crate) sequences: u32,
    /// Positions that each has in the cache.
    pub(crate) depth: u32,
}

/// The plans of a checkpoint's ranks.
pub(crate) struct RankPlans<'a> {
    pub(crate) checkpoint: &'a Checkpoint,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) settings: EngineSettings,
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
        options.max_seqs = sequences;
        options.cache = CacheSize::Sequences(sequences);
        options.speculation = Speculation::default();
        options.context = Some(depth + 1);
        let rank = PlannedRank::new(self.device.clone(), ranks, ExpertDivision::Rows)?;
        let planned = plan_step(self.checkpoint, &rank, &options, sequences, &mut Vec::new())?;
        let sizes = StoredSizes::new(&rank, &planned.plan)?;
        let spans = vec![SequenceSpan { start: depth, tokens: 1, rows: 1 }; sequences as usize];
        let dims = Dims { tokens: sequences, seqs: sequences, rows: sequences, ..planned.plan.bucket };
        let step = RankStep::of(&planned.plan.graph, &sizes, &spans, &dims)?;
        let plan = planned.plan;
        let mut resident = 0.0;
        for entry in &plan.weights.entries {
            resident += rank.weight_bytes(entry)? as f64;
        }
        let positions = f64::from(sequences) * f64::from(depth + 1);
        for id in plan.graph.inputs_of(ValueSource::KvCache) {
            resident += sizes.position(&plan.graph.value(id).name) * positions;
        }
        Ok(PlannedRankStep { step, resident, plan })
    }
}

impl PlannedRankStep {
    /// Products like those of the step, on each of so many ranks: of the format that most bytes of its weights are in, as wide as
    /// the narrowest of those, and as many as the rank has, within a bound.
    ///
    /// # Errors
    /// A model without matrices.
    pub(crate) fn products(&self, ranks: u32, tokens: u32) -> Result<ProductSizes, CliFailure> {
        let none = || {
            let why = "its plan has no product with stored weights".into();
            HalError::Unsupported { what: "the time of a step of this model on several ranks".into(), why }
        };
        let bytes_of = |of: Format| self.matrices().filter(|m| m.0 == of).map(|(_, bytes, _)| bytes).sum::<usize>();
        let format = self.matrices().map(|(format, _, _)| format).max_by_key(|&format| bytes_of(format));
        let format = format.ok_or_else(none)?;
        let of_format = self.matrices().filter(|(of, _, _)| *of == format);
        let width = of_format.map(|(_, _, width)| width).min().ok_or_else(none)?;
        let info = format.info();
        let each = f64::from(width) * (width as usize / info.block * info.bytes) as f64;
        let bytes = self.step.work.weight_bytes.min(MOST_BYTES / f64::from(ranks));
        let count = (bytes / each).ceil().max(1.0) as u32;
        Ok(ProductSizes { format, width, count, tokens, precision: self.plan.precision })
    }

    /// Format, bytes and width of each weight that is a matrix.
    fn matrices(&self) -> impl Iterator<Item = (Format, usize, u32)> {
        self.plan.weights.entries.iter().filter_map(|entry| match (entry.ty.dtype, entry.ty.shape.len()) {
            (DType::Stored(format), 2..) => Some((format, entry.ty.bytes(&Dims::default()), entry.ty.width()? as u32)),
            _ => None,
        })
    }
}
