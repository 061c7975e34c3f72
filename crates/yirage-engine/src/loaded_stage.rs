//! What an engine has on each device of its model.

use crate::error::EngineError;
use crate::load::{StageLoadPlan, stage_devices};
use crate::options::EngineOptions;
use crate::packed::Notice;
use crate::runner::RunnerStage;
use crate::variants::{self, ChosenVariant, ModelMatmuls};
use yirage_hal::{Bindings, Device};
use yirage_plan::{VerifiedPlan, WeightPlan};

/// A stage of a model on its device; all of a model that is not cut.
pub(crate) struct LoadedStage {
    /// The step input in which it is given the rows of the stage before it; none of the first.
    pub(crate) reads: Option<String>,
    pub(crate) weights: WeightPlan,
    pub(crate) plans: Vec<VerifiedPlan>,
    /// Weights and caches, which programs for other adapters share.
    pub(crate) bindings: Bindings,
}

impl LoadedStage {
    /// The stages as a runner takes them.
    pub(crate) fn runner_stages<'a>(stages: &'a [LoadedStage], device: &'a dyn Device) -> Vec<RunnerStage<'a>> {
        let runner_stage = |(stage, device): (&'a LoadedStage, &'a dyn Device)| RunnerStage {
            device,
            reads: stage.reads.as_deref(),
            plans: &stage.plans,
            bindings: &stage.bindings,
        };
        stages.iter().zip(stage_devices(device)).map(runner_stage).collect()
    }
}

/// The stages whose names stand for these, each with the way of its device's kernels bound; and that of the first that has
/// several.
///
/// # Errors
/// As of [`variants::bind`].
pub(crate) fn loaded_stages(
    device: &dyn Device,
    planned: Vec<StageLoadPlan>,
    bindings: Vec<Bindings>,
    options: &EngineOptions,
    told: &mut Vec<Notice>,
) -> Result<(Vec<LoadedStage>, Option<ChosenVariant>), EngineError> {
    let (mut stages, mut first) = (Vec::with_capacity(planned.len()), None);
    for ((stage, mut bindings), device) in planned.into_iter().zip(bindings).zip(stage_devices(device)) {
        let products = ModelMatmuls::of(&stage, options.precision);
        let variant = variants::bind(device, products, &mut bindings, &options.tuning, told)?;
        first = first.or(variant);
        let StageLoadPlan { reads, weights, plans, .. } = stage;
        stages.push(LoadedStage { reads, weights, plans, bindings });
    }
    Ok((stages, first))
}
