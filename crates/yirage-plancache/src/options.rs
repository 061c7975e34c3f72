//! How plans are made and kept.

use crate::folder::PlanFolder;
use crate::fusion::FusionProfile;
use crate::limits::CACHE_BYTES;
use yirage_plan::Precision;

/// How plans are made and kept: InfiniLM's `FusionConfig`, with bounds that it lacks.
#[derive(Clone, PartialEq, Debug)]
pub struct CacheOptions {
    /// Whether plans are kept and fused at first ([`PlanCache::set_fusion_enabled`](crate::PlanCache::set_fusion_enabled)).
    pub enable_fusion: bool,
    /// Whether a fused plan that fails gives way to one without fusion. Otherwise its error is the call's.
    pub fallback_on_error: bool,
    /// How closely products are computed.
    pub precision: Precision,
    /// Runs of a new plan before the one that answers its first call. They change nothing else: what a call leaves in cache
    /// states it leaves there again.
    pub warmup: u32,
    /// Most bytes that kept plans take on the device, weights included. Those used longest ago go first; with 0 nothing is
    /// kept.
    pub bytes: u64,
    /// Graphs of more nodes are not fused; none is too large by default.
    pub max_graph_size: Option<usize>,
    /// Graphs whose largest value has fewer elements are not fused.
    pub min_tensor_elements: u64,
    /// Graphs of fewer nodes are not fused.
    pub min_nodes_for_fusion: usize,
    /// Measured times that decide what is fused. Without it, and where it has nothing of a shape, graphs are fused.
    pub profile: Option<FusionProfile>,
    /// Where plans are kept for other processes.
    pub folder: Option<PlanFolder>,
}

impl Default for CacheOptions {
    /// Exact, fused from two nodes and 1024 elements on, a gibibyte, nothing on disk.
    fn default() -> CacheOptions {
        CacheOptions {
            enable_fusion: true,
            fallback_on_error: true,
            precision: Precision::Exact,
            warmup: 0,
            bytes: CACHE_BYTES,
            max_graph_size: None,
            min_tensor_elements: 1024,
            min_nodes_for_fusion: 2,
            profile: None,
            folder: None,
        }
    }
}
