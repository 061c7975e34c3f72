//! Errors of the key/value bookkeeping.

use crate::limits::{MAX_GROUPS, MAX_POOL_BLOCKS};

/// Why a manager cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// No group, or too many.
    #[error("the model declares {groups} cache groups; between 1 and {MAX_GROUPS} are supported")]
    GroupCount {
        /// Groups declared.
        groups: usize,
    },
    /// A pool without blocks or beyond what slot numbers can address.
    #[error("cache group {group} has a pool of {blocks} blocks; between 1 and {MAX_POOL_BLOCKS} are supported")]
    PoolSize {
        /// Index of the group.
        group: usize,
        /// Blocks asked for.
        blocks: u64,
    },
    /// A window in which not even the query itself is visible.
    #[error("cache group {group} has a sliding window of 0 positions; a window counts the query itself, so at least 1")]
    EmptyWindow {
        /// Index of the group.
        group: usize,
    },
}

/// A group's pool cannot serve an allocation. The caller preempts something or waits; nothing was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cache group {group} needs {needed} more blocks and {available} are available")]
pub struct OutOfBlocks {
    /// Index of the group.
    pub group: usize,
    /// Blocks the sequence still needed in that group.
    pub needed: usize,
    /// Blocks that were free or evictable.
    pub available: usize,
}
