//! From files to a model on a device: what it will take is known before anything is loaded.

mod buckets;
mod cache;
mod longest;
mod predict;
mod prepare;
mod progress;
mod sizes;
mod stage;
mod weights;

pub(crate) use cache::kv_cache_type;
pub(crate) use predict::check;
pub(crate) use prepare::{
    BuiltModel, ModelLoadPlan, RebuiltStage, build, prepare, prepare_graph_model, prepare_mtp_head, rebuild,
    whole_model_wanted,
};
pub use prepare::{PlannedStep, plan_step};
pub use progress::LoadProgressFn;
pub(crate) use sizes::DeviceSizes;
pub(crate) use stage::{StageLoadPlan, stage_devices};
pub(crate) use weights::{bind, bind_graph_model, bind_weights};
