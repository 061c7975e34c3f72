//! What a cache has done.

use crate::mode::Mode;
use yirage_ir::Dims;

/// What a cache has done, by InfiniLM's names where it has them.
///
/// `cache_hits + cache_misses` are the calls that looked for a plan: all but those in [`Mode::Native`], those while fusion was
/// disabled, and those whose inputs were refused. `recordings` is `cache_misses`, and `fusion_attempts` is
/// `fusion_successes + fusion_fallbacks`, at any time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlanCacheStats {
    /// Whether plans are kept and fused now.
    pub enabled: bool,
    /// Whether the device has kernels for fused nodes.
    pub fusion_available: bool,
    /// Calls that found a plan, or one that another call was making.
    pub cache_hits: u64,
    /// Calls that did not.
    pub cache_misses: u64,
    /// Plans that were begun to be made or read.
    pub recordings: u64,
    /// Fused plans that were put to the test: at their first call, and at a later one that they did not stand.
    pub fusion_attempts: u64,
    /// Of these the ones that stood it.
    pub fusion_successes: u64,
    /// Of these the ones that gave way to a plan without fusion.
    pub fusion_fallbacks: u64,
    /// Plans that were compiled for this cache.
    pub compiled: u64,
    /// Plans that were read from files.
    pub read: u64,
    /// Plan files that were refused.
    pub refused: u64,
    /// Plans that made room for others.
    pub evicted: u64,
    /// Calls that found or made a plan and ended in an error.
    pub errors: u64,
    /// Bytes that kept plans take on the device, weights included.
    pub bytes: u64,
    /// The kept plans, the one used last at the end.
    pub plans: Vec<CachedPlan>,
}

/// A kept plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CachedPlan {
    /// A number that names graph, sizes and whether fusion was wanted; the same in every process.
    pub id: u64,
    /// Its graph's name.
    pub graph: String,
    /// The sizes of its calls.
    pub dims: Dims,
    /// How it runs. A fused plan that failed runs as [`Mode::GraphReplay`].
    pub mode: Mode,
    /// Steps of the plan.
    pub steps: usize,
}
