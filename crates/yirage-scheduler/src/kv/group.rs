//! What a model says about its caches: the shape of what is kept per position, and for how long.

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
    /// The states of recurrent layers: a block holds what they are after the last computed position of its
    /// positions. A sequence needs that of its latest position alone; those of full blocks are what other sequences that
    /// begin alike begin with.
    Recurrent {
        /// Elements of the states of all layers of the group.
        elements: u64,
        /// Of a run of positions, the state is kept behind each so many full blocks, behind its last full block, and behind
        /// the run. 1 keeps that of every block.
        every: u32,
    },
}

impl CacheGroup {
    /// The sliding window in positions, or `None` when every position stays visible. A recurrent layer sees the position
    /// before its own.
    pub fn window(&self) -> Option<u32> {
        match self {
            CacheGroup::Paged { window, .. } => *window,
            CacheGroup::Latent { .. } => None,
            CacheGroup::Recurrent { .. } => Some(2),
        }
    }

    /// Whether a position that is computed once cannot be computed again: its state has become that of the next.
    pub fn is_recurrent(&self) -> bool {
        matches!(self, CacheGroup::Recurrent { .. })
    }

    /// Elements of cache one block of so many positions takes over all layers of the group.
    pub fn elements_per_block(&self, block: usize) -> u64 {
        let (width, layers) = match self {
            CacheGroup::Paged { k_width, v_width, layers, .. } => (u64::from(*k_width) + u64::from(*v_width), *layers),
            CacheGroup::Latent { rank, rope, layers } => (u64::from(*rank) + u64::from(*rope), *layers),
            CacheGroup::Recurrent { elements, .. } => return *elements,
        };
        width * u64::from(layers) * block as u64
    }

    /// Whether a run that ends in block `last` takes a block of the pool for block `at` of positions.
    pub(crate) fn takes(&self, at: usize, last: usize) -> bool {
        match self {
            CacheGroup::Recurrent { every, .. } => at + 1 >= last || (at + 1).is_multiple_of(*every as usize),
            CacheGroup::Paged { .. } | CacheGroup::Latent { .. } => true,
        }
    }

    /// The first position that a query at `position` or any later one can still see.
    pub(crate) fn first_visible(&self, position: usize) -> usize {
        match self.window() {
            Some(window) => (position + 1).saturating_sub(window as usize),
            None => 0,
        }
    }

    /// The most blocks of so many positions that a sequence of `positions` holds at once when each step runs at most `chunk` new
    /// ones.
    ///
    /// A window group needs `window - 1` positions before the chunk and the chunk itself; a run of L positions touches
    /// at most `1 + ceil((L - 1) / block)` blocks wherever it begins. Of these recurrent states take the first, the last two
    /// and some between.
    pub fn peak_blocks(&self, positions: usize, chunk: usize, block: usize) -> usize {
        let all = positions.div_ceil(block);
        match self.window() {
            Some(window) => {
                let run = (window as usize - 1).saturating_add(chunk.max(1));
                let touched = 1 + (run - 1).div_ceil(block);
                let taken = match self {
                    CacheGroup::Recurrent { every, .. } => touched.min(4 + touched / (*every).max(1) as usize),
                    CacheGroup::Paged { .. } | CacheGroup::Latent { .. } => touched,
                };
                all.min(taken)
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
    /// Blocks in this group's pool.
    pub blocks: u32,
}
