//! Hands blocks to sequences and finds blocks again for equal beginnings.

use super::error::{KvError, OutOfBlocks};
use super::group::{CacheGroup, GroupConfig};
use super::key::BlockKey;
use super::pool::KvBlockPool;
use super::seq::{NO_BLOCK, SeqCache};
use crate::limits::{BLOCK, MAX_GROUPS, MAX_POOL_BLOCKS};

/// The pools of all cache groups of one model. A pure value: equal calls give equal answers.
///
/// Rules that hold after every call and that [`KvManager::check`] verifies: each block is free, cached (published and
/// unreferenced) or referenced exactly as often as tables hold it; a block that can still be written is in one table
/// and not published; a sequence holds every block its next query can see, of recurrent states the one before its next
/// position.
#[derive(Clone, Debug)]
pub struct KvManager {
    pub(super) groups: Vec<CacheGroup>,
    pub(super) pools: Vec<KvBlockPool>,
    prefix_cache: bool,
    /// Positions of a block.
    pub(super) block: usize,
}

impl KvManager {
    /// A manager with all blocks free. `prefix_cache` switches publishing and reuse of full blocks on.
    ///
    /// # Errors
    /// [`KvError`] for no or too many groups, an empty or too large pool, and a window of 0.
    pub fn new(groups: &[GroupConfig], prefix_cache: bool) -> Result<Self, KvError> {
        if groups.is_empty() || groups.len() > MAX_GROUPS {
            return Err(KvError::GroupCount { groups: groups.len() });
        }
        for (group, config) in groups.iter().enumerate() {
            if config.group.window() == Some(0) {
                return Err(KvError::EmptyWindow { group });
            }
            if config.blocks == 0 || config.blocks > MAX_POOL_BLOCKS {
                return Err(KvError::PoolSize { group, blocks: config.blocks.into() });
            }
        }
        Ok(KvManager {
            groups: groups.iter().map(|config| config.group.clone()).collect(),
            pools: groups.iter().map(|config| KvBlockPool::new(config.blocks)).collect(),
            prefix_cache,
            block: BLOCK,
        })
    }

    /// The same with blocks of so many positions, at least one, of which no sequence has any yet.
    #[must_use]
    pub fn with_block_positions(self, positions: usize) -> Self {
        KvManager { block: positions.max(1), ..self }
    }

    /// Positions of a block.
    pub fn block_positions(&self) -> usize {
        self.block
    }

    /// The declared groups, in the order of every table and slot list.
    pub fn groups(&self) -> &[CacheGroup] {
        &self.groups
    }

    /// Blocks of `group` that hold nothing.
    pub fn free_blocks(&self, group: usize) -> usize {
        self.pools[group].free.len()
    }

    /// Blocks of `group` that hold published content which no sequence references; an allocation may evict them.
    pub fn cached_blocks(&self, group: usize) -> usize {
        self.pools[group].evictable.len()
    }

    /// Blocks of `group` that at least one sequence holds.
    pub fn blocks_in_use(&self, group: usize) -> usize {
        self.pools[group].blocks.len() - self.pools[group].available()
    }

    /// Blocks in the pool of `group`.
    pub fn total_blocks(&self, group: usize) -> usize {
        self.pools[group].blocks.len()
    }

    /// The longest sequence, in cached positions, that fits the pools when it is alone and runs at most `chunk` new
    /// positions a step; `usize::MAX` when every group has a window and the pools hold the window and the chunk.
    pub fn max_positions(&self, chunk: usize) -> usize {
        let fits = |(group, pool): (&CacheGroup, &KvBlockPool)| {
            let blocks = pool.blocks.len();
            if group.peak_blocks(usize::MAX, chunk, self.block) <= blocks { usize::MAX } else { blocks * self.block }
        };
        self.groups.iter().zip(&self.pools).map(fits).min().unwrap_or(0)
    }

    /// A sequence that holds nothing, for the time before [`KvManager::open`].
    pub fn empty(&self) -> SeqCache {
        SeqCache::empty(BlockKey::root(&[]), self.groups.len(), self.block)
    }

    /// Starts a sequence of `tokens` with the longest beginning that all groups still have, at most `max_hit`
    /// positions and always at least one token short of `tokens`. [`SeqCache::len`] is the length of the hit.
    pub fn open(&mut self, tokens: &[u32], salt: &[u8], max_hit: usize) -> SeqCache {
        let mut seq = SeqCache::empty(BlockKey::root(salt), self.groups.len(), self.block);
        if !self.prefix_cache {
            return seq;
        }
        let limit = tokens.len().saturating_sub(1).min(max_hit) / self.block;
        let keys = self.cached_prefix(seq.root, tokens, limit);
        let hit = self.servable(&keys);
        for (group, (spec, pool)) in self.groups.iter().zip(&mut self.pools).enumerate() {
            let first = spec.first_visible(hit * self.block) / self.block;
            for (at, key) in keys[..hit].iter().enumerate() {
                let block = if at < first { None } else { pool.find(key) };
                if let Some(block) = block {
                    pool.retain(block);
                }
                seq.tables[group].push(block.map_or(NO_BLOCK, |block| block as i32));
            }
            seq.live_from[group] = first;
        }
        seq.keys = keys[..hit].to_vec();
        seq.len = hit * self.block;
        seq
    }

    /// A sequence of the whole blocks of `tokens` whose contents the caller writes next, as they were computed before: it
    /// has the blocks that the query behind them sees, and nothing of it is published before [`KvManager::advance`].
    ///
    /// # Errors
    /// As [`KvManager::reserve`].
    pub fn adopt(&mut self, tokens: &[u32], salt: &[u8]) -> Result<SeqCache, OutOfBlocks> {
        let mut seq = SeqCache::empty(BlockKey::root(salt), self.groups.len(), self.block);
        let end = tokens.len() / self.block;
        let first = |spec: &CacheGroup| spec.first_visible(end * self.block) / self.block;
        for (group, (spec, pool)) in self.groups.iter().zip(&self.pools).enumerate() {
            let (needed, available) = (end - first(spec), pool.available());
            if needed > available {
                return Err(OutOfBlocks { group, needed, available });
            }
        }
        for (group, (spec, pool)) in self.groups.iter().zip(&mut self.pools).enumerate() {
            seq.live_from[group] = first(spec);
            seq.tables[group] = vec![NO_BLOCK; first(spec)];
            for _ in first(spec)..end {
                let block = pool.allocate().expect("the loop above counted enough available blocks");
                seq.tables[group].push(block as i32);
            }
        }
        seq.len = end * self.block;
        Ok(seq)
    }

    /// Keys of the blocks of `tokens` up to the first that a group without a window lacks.
    fn cached_prefix(&self, root: BlockKey, tokens: &[u32], limit: usize) -> Vec<BlockKey> {
        let mut keys = Vec::new();
        for block in tokens.chunks_exact(self.block).take(limit) {
            let key = key_after(root, &keys, block);
            let lacks =
                |(group, pool): (&CacheGroup, &KvBlockPool)| group.window().is_none() && pool.find(&key).is_none();
            if self.groups.iter().zip(&self.pools).any(lacks) {
                break;
            }
            keys.push(key);
        }
        keys
    }

    /// The most leading blocks of `keys` after which every window group still has all blocks its next query sees.
    fn servable(&self, keys: &[BlockKey]) -> usize {
        let mut good = vec![true; keys.len() + 1];
        for (group, pool) in self.groups.iter().zip(&self.pools) {
            let mut present = 0;
            for end in 1..=keys.len() {
                present = if pool.find(&keys[end - 1]).is_some() { present + 1 } else { 0 };
                good[end] &= present >= end - group.first_visible(end * self.block) / self.block;
            }
        }
        good.iter().rposition(|&good| good).unwrap_or(0)
    }

    /// Forgets the cached beginnings that no sequence holds.
    pub fn forget(&mut self) {
        self.pools.iter_mut().for_each(KvBlockPool::forget);
    }

    /// Makes room for the positions up to `upto` (exclusive), after giving back what fell out of the windows.
    ///
    /// # Errors
    /// [`OutOfBlocks`] names the first group that is short; then no block was taken in any group.
    pub fn reserve(&mut self, seq: &mut SeqCache, upto: usize) -> Result<(), OutOfBlocks> {
        self.drop_unseen(seq);
        let end = upto.div_ceil(self.block);
        for (group, (spec, pool)) in self.groups.iter().zip(&self.pools).enumerate() {
            let needed = (seq.tables[group].len()..end).filter(|&at| spec.takes(at, end - 1)).count();
            let available = pool.available();
            if needed > available {
                return Err(OutOfBlocks { group, needed, available });
            }
        }
        for ((spec, table), pool) in self.groups.iter().zip(&mut seq.tables).zip(&mut self.pools) {
            for at in table.len()..end {
                let block = spec.takes(at, end - 1).then(|| pool.allocate());
                let block = block.map(|block| block.expect("the loop above counted enough available blocks"));
                table.push(block.map_or(NO_BLOCK, |block| block as i32));
            }
        }
        Ok(())
    }

    /// Makes room for positions up to `upto` (exclusive) as far as blocks that hold nothing suffice: nothing that is
    /// cached is evicted for it. Returns the positions there is room for, at least those there was room for before, at
    /// most `upto`. What the sequence's next query sees stays, whatever becomes of the positions.
    pub fn reserve_unused(&mut self, seq: &mut SeqCache, upto: usize) -> usize {
        let room = |(table, pool): (&Vec<i32>, &KvBlockPool)| (table.len() + pool.free.len()) * self.block;
        let room = seq.tables.iter().zip(&self.pools).map(room).min().unwrap_or(0);
        let upto = upto.min(room);
        for (table, pool) in seq.tables.iter_mut().zip(&mut self.pools) {
            while table.len() < upto.div_ceil(self.block) {
                let block = pool.allocate().expect("the count above bounds what is taken");
                table.push(block as i32);
            }
        }
        upto
    }

    /// Gives back the blocks behind the computed positions: those reserved for positions that came to nothing.
    pub fn roll_back(&mut self, seq: &mut SeqCache) {
        let keep = seq.len.div_ceil(self.block);
        for (table, pool) in seq.tables.iter_mut().zip(&mut self.pools) {
            while table.len() > keep {
                if let Some(mut last) = table.pop() {
                    release(pool, &mut last);
                }
            }
        }
    }

    /// Gives back the blocks that no query at the sequence's next position or later can see.
    fn drop_unseen(&mut self, seq: &mut SeqCache) {
        for (group, (spec, pool)) in self.groups.iter().zip(&mut self.pools).enumerate() {
            let first = (spec.first_visible(seq.len) / self.block).min(seq.tables[group].len());
            for at in seq.live_from[group]..first {
                release(pool, &mut seq.tables[group][at]);
            }
            seq.live_from[group] = seq.live_from[group].max(first);
        }
    }

    /// Records that the positions up to `upto` will have been computed before anything that is planned from now on.
    /// Nothing is published: that is left to [`KvManager::advance`].
    pub(crate) fn assume(&self, seq: &mut SeqCache, upto: usize) {
        seq.len = upto;
    }

    /// Records that the positions up to `upto` have been computed; `tokens` is the sequence's whole history, at least
    /// `upto` long. Blocks that became full are published.
    pub fn advance(&mut self, seq: &mut SeqCache, tokens: &[u32], upto: usize) {
        seq.len = upto;
        if !self.prefix_cache {
            return;
        }
        for at in seq.keys.len()..upto / self.block {
            let key = key_after(seq.root, &seq.keys, &tokens[at * self.block..(at + 1) * self.block]);
            seq.keys.push(key);
            for (table, pool) in seq.tables.iter().zip(&mut self.pools) {
                if let Ok(block) = u32::try_from(table[at]) {
                    pool.publish(block, key);
                }
            }
        }
    }

    /// Gives all blocks of a sequence back and leaves it empty. Later blocks are released first, so that they are
    /// evicted before the beginnings that other sequences are likelier to share.
    pub fn close(&mut self, seq: &mut SeqCache) {
        for (table, pool) in seq.tables.iter_mut().zip(&mut self.pools) {
            for entry in table.iter_mut().rev() {
                release(pool, entry);
            }
        }
        *seq = self.empty();
    }

    /// Whether every group has `wanted[group]` blocks available.
    pub(crate) fn has_available(&self, wanted: &[usize]) -> bool {
        self.pools.iter().zip(wanted).all(|(pool, &wanted)| wanted <= pool.available())
    }

    /// Adds to `wanted` the blocks `seq` may still take per group until `upto` positions are computed in steps of at
    /// most `chunk`.
    pub(crate) fn add_outstanding(&self, seq: &SeqCache, upto: usize, chunk: usize, wanted: &mut [usize]) {
        for (group, wanted) in wanted.iter_mut().enumerate() {
            *wanted += self.groups[group].peak_blocks(upto, chunk, self.block).saturating_sub(seq.live_blocks(group));
        }
    }
}

/// The key of the block of `tokens` that follows the blocks with `keys`.
fn key_after(root: BlockKey, keys: &[BlockKey], tokens: &[u32]) -> BlockKey {
    keys.last().unwrap_or(&root).child(tokens)
}

/// Releases the block of a table entry, if it has one.
fn release(pool: &mut KvBlockPool, entry: &mut i32) {
    if let Ok(block) = u32::try_from(*entry) {
        pool.release(block);
    }
    *entry = NO_BLOCK;
}
