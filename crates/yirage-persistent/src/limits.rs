//! Every hard limit of this crate: what is beyond these numbers is refused with an error that quotes them.

/// Tensors of one kernel.
pub(crate) const MAX_TENSORS: usize = 1 << 16;

/// Layers of one kernel.
pub(crate) const MAX_LAYERS: usize = 1 << 16;

/// Ranks that run in one process.
pub(crate) const MAX_RANKS: u32 = 64;

/// Dimensions of a tensor.
pub(crate) const MAX_RANK: usize = 4;

/// Largest size of one dimension.
pub(crate) const MAX_SIZE: u32 = 1 << 26;

/// Blocks of a grid in one dimension, and threads of a block in all, as CUDA has them.
pub(crate) const MAX_GRID: u32 = 65_535;
/// See [`MAX_GRID`].
pub(crate) const MAX_BLOCK: u32 = 1024;

/// Bytes of a saved kernel's description.
pub(crate) const MAX_SAVED_BYTES: u64 = 64 << 20;

/// Bytes of a saved kernel's plans.
pub(crate) const MAX_PLAN_BYTES: u64 = 1 << 30;

/// Requests that one kernel has rows for.
pub(crate) const MAX_REQUESTS: usize = 1 << 16;

/// Elements of `tokens`.
pub(crate) const MAX_TOKENS: usize = 1 << 28;
