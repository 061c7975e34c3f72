//! What a sequence has of adapters while it runs.

use std::sync::Arc;

/// What a request gets of adapters.
pub(super) struct RequestAdapters {
    /// Scales that are not 0, by the adapters' hashes, which tell cached beginnings apart.
    pub(super) used: Vec<(u128, f32)>,
    /// A token's row of scales; empty for a model without adapters.
    pub(super) row: Arc<[f32]>,
}
