//! One group's blocks: reference counts, the index of published blocks, and the order of eviction.

use std::collections::BTreeMap;

use super::key::BlockKey;

/// What the pool knows of one block. `refs == 0` without a key is free; `refs == 0` with a key is cached.
#[derive(Clone, Debug, Default)]
pub(super) struct KvPoolBlock {
    /// Sequences whose table holds this block.
    pub(super) refs: u32,
    /// Set once the block is full and findable; its content never changes while this is set.
    pub(super) key: Option<BlockKey>,
    /// Place in the eviction order while cached.
    pub(super) released_at: u64,
}

/// The blocks of one cache group.
#[derive(Clone, Debug)]
pub(super) struct KvBlockPool {
    pub(super) blocks: Vec<KvPoolBlock>,
    pub(super) free: Vec<u32>,
    pub(super) index: BTreeMap<BlockKey, u32>,
    /// Cached blocks by the time of their last release, oldest first.
    pub(super) evictable: BTreeMap<u64, u32>,
    releases: u64,
}

impl KvBlockPool {
    /// A pool of `blocks` free blocks, handed out in ascending order at first.
    pub(super) fn new(blocks: u32) -> Self {
        KvBlockPool {
            blocks: vec![KvPoolBlock::default(); blocks as usize],
            free: (0..blocks).rev().collect(),
            index: BTreeMap::new(),
            evictable: BTreeMap::new(),
            releases: 0,
        }
    }

    /// Blocks an allocation can get: free ones and cached ones nobody references.
    pub(super) fn available(&self) -> usize {
        self.free.len() + self.evictable.len()
    }

    /// Takes a block for writing: a free one, else the one unused for longest, which loses its key.
    pub(super) fn allocate(&mut self) -> Option<u32> {
        let block = match self.free.pop() {
            Some(block) => block,
            None => {
                let (_, block) = self.evictable.pop_first()?;
                if let Some(key) = self.blocks[block as usize].key.take() {
                    self.index.remove(&key);
                }
                block
            }
        };
        self.blocks[block as usize].refs = 1;
        Some(block)
    }

    /// The block published under `key`, if it is still there.
    pub(super) fn find(&self, key: &BlockKey) -> Option<u32> {
        self.index.get(key).copied()
    }

    /// Adds a reference to a published block.
    pub(super) fn retain(&mut self, block: u32) {
        let entry = &mut self.blocks[block as usize];
        if entry.refs == 0 {
            self.evictable.remove(&entry.released_at);
        }
        entry.refs += 1;
    }

    /// Gives one reference back. The last one makes the block evictable when it is published and free when not.
    pub(super) fn release(&mut self, block: u32) {
        let entry = &mut self.blocks[block as usize];
        entry.refs -= 1;
        if entry.refs > 0 {
            return;
        }
        if entry.key.is_some() {
            entry.released_at = self.releases;
            self.evictable.insert(self.releases, block);
            self.releases += 1;
        } else {
            self.free.push(block);
        }
    }

    /// Makes a full block findable. When another block already has this content, that one stays the findable one and
    /// this one returns to the free list with its last reference.
    pub(super) fn publish(&mut self, block: u32, key: BlockKey) {
        if let std::collections::btree_map::Entry::Vacant(place) = self.index.entry(key) {
            place.insert(block);
            self.blocks[block as usize].key = Some(key);
        }
    }

    /// Frees the cached blocks that nobody references.
    pub(super) fn forget(&mut self) {
        for block in std::mem::take(&mut self.evictable).into_values() {
            if let Some(key) = self.blocks[block as usize].key.take() {
                self.index.remove(&key);
            }
            self.free.push(block);
        }
    }
}
