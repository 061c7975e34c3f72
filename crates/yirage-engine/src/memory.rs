//! What a model takes of a device's memory.

/// Memory a model takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoadBytes {
    /// Weights, those that are computed among them.
    pub weights: u64,
    /// Cache.
    pub cache: u64,
    /// Arenas of the plans.
    pub arena: u64,
    /// What is kept of blocks, tokens and steps: block tables, slots, rows of logits.
    pub tables: u64,
}

impl LoadBytes {
    /// All of it.
    pub fn total(&self) -> u64 {
        [self.cache, self.arena, self.tables].into_iter().fold(self.weights, u64::saturating_add)
    }

    /// This and what another device takes.
    pub(crate) fn and(self, other: LoadBytes) -> LoadBytes {
        LoadBytes {
            weights: self.weights.saturating_add(other.weights),
            cache: self.cache.saturating_add(other.cache),
            arena: self.arena.saturating_add(other.arena),
            tables: self.tables.saturating_add(other.tables),
        }
    }
}
