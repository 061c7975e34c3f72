//! From files to a model on a device: what it will take is known before anything is loaded.

mod buckets;
mod cache;
mod longest;
mod predict;
mod prepare;
mod progress;
mod sizes;
mod weights;

pub(crate) use cache::state_type;
pub(crate) use predict::check;
pub(crate) use prepare::{Built, Prepared, build, prepare, prepare_given};
pub use prepare::{PlannedStep, plan_step};
pub use progress::Progress;
pub(crate) use sizes::DeviceSizes;
pub(crate) use weights::{bind, bind_given, bind_weights};
