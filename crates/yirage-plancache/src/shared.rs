//! What all calls of a cache work on.

use crate::native::NativePlans;
use crate::options::CacheOptions;
use crate::plan_lru::PlanLru;
use std::sync::{Arc, Mutex};
use yirage_hal::Device;
use yirage_plan::Target;

/// What all calls of a cache work on.
pub(crate) struct PlanCacheContext {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) target: Target,
    pub(crate) options: CacheOptions,
    pub(crate) plans: Mutex<PlanLru>,
    pub(crate) native: NativePlans,
}
