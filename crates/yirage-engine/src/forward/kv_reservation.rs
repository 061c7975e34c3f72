//! Room for the keys and values of sequences, and which positions of each are there.

use yirage_plancache::BoundGraph;

/// Room for sequences of full length. Sequence i has the blocks from `i * blocks` on, in every group.
pub(super) struct KvReservation {
    /// Positions of each sequence that are there.
    pub(super) lengths: Vec<u32>,
    /// Blocks of a sequence.
    pub(super) blocks: u32,
    /// Positions of a block.
    pub(super) positions: u32,
    /// The graph with weights and states.
    pub(super) graph: BoundGraph,
}
