//! Who comes before whom among the sequences that had a turn.

/// A sequence's rank. Before others stands who is more urgent, and of one priority who had its first turn earlier. It
/// never changes, so whoever is preempted comes back to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) priority: i32,
    /// Which admission was its first; none before it.
    pub(super) turn: Option<u64>,
}
