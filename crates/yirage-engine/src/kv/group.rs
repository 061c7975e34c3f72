//! What a model says about its caches: the shape of what is kept per position, and for how long.

use crate::limits::BLOCK;

/// One kind of per-sequence state of a model. All layers of a group share one block table, because they cache the same
/// positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheGroup {
    /// Keys and values of ordinary attention.
    Paged {
        /// Elements of all key heads of one position in one layer.
        k_width: u32,
        /// Elements of all value heads of one position in one layer.
        v_width: u32,
        /// Sliding window: the query at position q sees the keys at positions above `q - window`, itself included.
        /// `None` sees everything.
        window: Option<u32>,
        /// Layers in this group.
        layers: u32,
    },
    /// The compressed state of multi-head latent attention (one latent vector and one rotated key per position).
    Latent {
        /// Elements of the latent vector of one position in one layer.
        rank: u32,
        /// Elements of the rotated key part of one position in one layer.
        rope: u32,
        /// Layers in this group.
        layers: u32,
    },
    /// A state of fixed size per sequence (a recurrent layer). Declared so that a model can name it; no manager
    /// accepts it yet.
    Slot {
        /// Bytes of state per sequence.
        bytes: u64,
    },
}

impl CacheGroup {
    /// The sliding window in positions, or `None` when every position stays visible.
    pub fn window(&self) -> Option<u32> {
        match self {
            CacheGroup::Paged { window, .. } => *window,
            CacheGroup::Latent { .. } | CacheGroup::Slot { .. } => None,
        }
    }

    /// Elements of cache one block of [`BLOCK`] positions takes over all layers of the group; 0 for [`Self::Slot`],
    /// which has no blocks.
    pub fn elements_per_block(&self) -> u64 {
        let (width, layers) = match self {
            CacheGroup::Paged { k_width, v_width, layers, .. } => (u64::from(*k_width) + u64::from(*v_width), *layers),
            CacheGroup::Latent { rank, rope, layers } => (u64::from(*rank) + u64::from(*rope), *layers),
            CacheGroup::Slot { .. } => (0, 0),
        };
        width * u64::from(layers) * BLOCK as u64
    }

    /// The first position that a query at `position` or any later one can still see.
    pub(crate) fn first_visible(&self, position: usize) -> usize {
        match self.window() {
            Some(window) => (position + 1).saturating_sub(window as usize),
            None => 0,
        }
    }

    /// The most blocks a sequence of `positions` holds at once when each step runs at most `chunk` new positions.
    ///
    /// A window group needs `window - 1` positions before the chunk and the chunk itself; a run of L positions touches
    /// at most `1 + ceil((L - 1) / BLOCK)` blocks wherever it begins.
    pub fn peak_blocks(&self, positions: usize, chunk: usize) -> usize {
        let all = positions.div_ceil(BLOCK);
        match self.window() {
            Some(window) => {
                let run = (window as usize - 1).saturating_add(chunk.max(1));
                all.min(1 + (run - 1).div_ceil(BLOCK))
            }
            None => all,
        }
    }
}

/// A cache group and the size of its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// What is cached.
    pub group: CacheGroup,
    /// Blocks of [`BLOCK`] positions in this group's pool.
    pub blocks: u32,
}
