//! What all calls of a cache work on.

use crate::kept::Kept;
use crate::native::NativePlans;
use crate::options::CacheOptions;
use std::sync::{Arc, Mutex};
use yirage_hal::Device;
use yirage_plan::Target;

/// What all calls of a cache work on.
pub(crate) struct Shared {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) target: Target,
    pub(crate) options: CacheOptions,
    pub(crate) kept: Mutex<Kept>,
    pub(crate) native: NativePlans,
}
