//! The cache a single sequence holds.

use super::key::BlockKey;

/// Table entry of a block that is not held (it fell out of a window).
pub const NO_BLOCK: i32 = -1;

/// One sequence's share of the cache: its block table per group and how many positions are in it.
///
/// Only [`super::KvManager`] changes it. Dropping a value that holds blocks leaks them in the manager's accounting
/// (never memory); give it back with [`super::KvManager::close`].
#[derive(Clone, Debug)]
pub struct SeqCache {
    /// Per group, per logical block: a block of the group's pool, or [`NO_BLOCK`] of one that fell out of a window or whose
    /// recurrent state is not kept.
    pub(super) tables: Vec<Vec<i32>>,
    /// Per group: the first logical block that is still held.
    pub(super) live_from: Vec<usize>,
    /// Parent of the first block's key.
    pub(super) root: BlockKey,
    /// Keys of the full blocks computed so far.
    pub(super) keys: Vec<BlockKey>,
    /// Positions whose keys and values are in the cache.
    pub(super) len: usize,
    /// Positions of a block.
    block: usize,
}

impl SeqCache {
    /// A sequence that holds nothing in any of `groups` groups, whose blocks have so many positions.
    pub(super) fn empty(root: BlockKey, groups: usize, block: usize) -> Self {
        SeqCache { tables: vec![Vec::new(); groups], live_from: vec![0; groups], root, keys: Vec::new(), len: 0, block }
    }

    /// Positions whose keys and values are in the cache: the next position to compute.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is in the cache.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Positions of a block.
    pub fn block_positions(&self) -> usize {
        self.block
    }

    /// The blocks that are held in `group`: entry i holds the positions of the ith block, or is [`NO_BLOCK`].
    pub fn table(&self, group: usize) -> &[i32] {
        &self.tables[group]
    }

    /// The block table of `group` as a step reads it: as [`SeqCache::table`], but that positions whose recurrent state is
    /// not kept are computed in the next block that is.
    pub fn step_table(&self, group: usize) -> Vec<i32> {
        let mut table = self.tables[group].clone();
        let mut next = NO_BLOCK;
        for entry in table.iter_mut().skip(self.live_from[group]).rev() {
            if *entry == NO_BLOCK {
                *entry = next;
            }
            next = *entry;
        }
        table
    }

    /// Blocks held in `group`.
    pub fn live_blocks(&self, group: usize) -> usize {
        self.tables[group].iter().filter(|&&block| block != NO_BLOCK).count()
    }

    /// The slot (block times its positions, and the offset in it) of `position` in `group`, or `None` when the position is not held.
    pub fn slot(&self, group: usize, position: usize) -> Option<u32> {
        let block = *self.tables[group].get(position / self.block)?;
        let block = u32::try_from(block).ok()?;
        Some(block * self.block as u32 + (position % self.block) as u32)
    }
}
