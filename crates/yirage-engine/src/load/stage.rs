//! What each device has of a model: all of it, or the layers of a pipeline stage.

use crate::error::EngineError;
use crate::memory::LoadBytes;
use crate::options::EngineOptions;
use crate::plans::PlanProvider;
use yirage_compile::plan_weights;
use yirage_hal::Device;
use yirage_ir::Dims;
use yirage_model::arch::{Model, PipelineStage};
use yirage_plan::{Target, VerifiedPlan, WeightPlan};

/// A stage's numbers before it is loaded.
pub(crate) struct StageLoadPlan {
    /// The step input in which it is given the rows of the stage before it; none of the first.
    pub(crate) reads: Option<String>,
    pub(crate) model: Model,
    pub(crate) weights: WeightPlan,
    /// One for each bucket, the smallest first.
    pub(crate) plans: Vec<VerifiedPlan>,
    /// On its device.
    pub(crate) bytes: LoadBytes,
}

/// A stage's graph and where its weights go.
pub(crate) struct BuiltStage {
    pub(crate) reads: Option<String>,
    pub(crate) model: Model,
    pub(crate) weights: WeightPlan,
    target: Target,
}

impl BuiltStage {
    /// Its plans for steps of these sizes.
    ///
    /// # Errors
    /// What the compiler says.
    pub(super) fn plans(
        &self,
        buckets: &[Dims],
        options: &EngineOptions,
        kept: &PlanProvider,
    ) -> Result<Vec<VerifiedPlan>, EngineError> {
        let compiling = options.compiling();
        let plan = |&bucket| kept.plan(&self.model.graph, bucket, &self.target, &self.weights, &compiling);
        Ok(buckets.iter().map(plan).collect::<Result<_, _>>()?)
    }
}

/// The devices of a model's stages, in order: those of a pipeline, else this one.
pub(crate) fn stage_devices(device: &dyn Device) -> Vec<&dyn Device> {
    device.stages().map_or_else(|| vec![device], |stages| stages.iter().map(|stage| &**stage).collect())
}

/// The stages of a model on a device: as many as a pipeline has, else one.
///
/// # Errors
/// A model that cannot be cut so, and what the planner of weights says.
pub(super) fn built_stages(model: &Model, device: &dyn Device) -> Result<Vec<BuiltStage>, EngineError> {
    let devices = stage_devices(device);
    let stages = match device.stages() {
        None => vec![(None, model.clone())],
        Some(_) => {
            let stages = model.stages(devices.len() as u32)?;
            stages.into_iter().map(|PipelineStage { reads, model, .. }| (reads, model)).collect()
        }
    };
    let built = |((reads, model), device): ((Option<String>, Model), &dyn Device)| {
        let target = device.target();
        let weights = plan_weights(&model.graph, &target)?;
        Ok(BuiltStage { reads, model, weights, target })
    };
    stages.into_iter().zip(devices).map(built).collect()
}
