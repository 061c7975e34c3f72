//! The invariants of the bookkeeping, recomputed from nothing but the tables. Used by tests; linear in the pools.

use super::manager::KvManager;
use super::pool::KvBlockPool;
use super::seq::SeqCache;

/// A broken invariant, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cache group {group}, block {block}: {what}")]
pub struct Violation {
    /// Index of the group.
    pub group: usize,
    /// Block of the group's pool, or the logical block of a table where `what` says so.
    pub block: usize,
    /// What is wrong, with the numbers.
    pub what: String,
}

impl KvManager {
    /// Verifies every invariant against the sequences that are alive.
    ///
    /// # Errors
    /// The first [`Violation`] found. It is always a bug of this crate or a sequence that was dropped, duplicated or
    /// left out of `live`.
    pub fn check<'a>(&self, live: impl IntoIterator<Item = &'a SeqCache>) -> Result<(), Violation> {
        let live: Vec<&SeqCache> = live.into_iter().collect();
        for (group, pool) in self.pools.iter().enumerate() {
            let fail = |block: usize, what: String| Violation { group, block, what };
            let mut holders = vec![0u32; pool.blocks.len()];
            let mut writers = vec![false; pool.blocks.len()];
            for seq in &live {
                self.check_reach(group, seq).map_err(|(at, what)| fail(at, what))?;
                for (at, &entry) in seq.tables[group].iter().enumerate() {
                    let Ok(block) = usize::try_from(entry) else { continue };
                    if block >= pool.blocks.len() {
                        return Err(fail(block, format!("in a table, but the pool has {}", pool.blocks.len())));
                    }
                    holders[block] += 1;
                    writers[block] |= (at + 1) * self.block > seq.len;
                }
            }
            for block in 0..pool.blocks.len() {
                check_block(pool, block, holders[block], writers[block]).map_err(|what| fail(block, what))?;
            }
            check_lists(pool).map_err(|(block, what)| fail(block, what))?;
        }
        Ok(())
    }

    /// Between two steps a sequence holds no block behind its computed positions.
    pub(crate) fn check_tight(&self, seq: &SeqCache) -> Result<(), Violation> {
        let most = seq.len.div_ceil(self.block);
        let too_long = |(group, table): (usize, &Vec<i32>)| {
            let what = format!("{} positions computed, the table has {} blocks", seq.len, table.len());
            (table.len() > most).then_some(Violation { group, block: most, what })
        };
        seq.tables.iter().enumerate().find_map(too_long).map_or(Ok(()), Err)
    }

    /// A sequence must hold every block its next query sees, and nothing before `live_from`.
    fn check_reach(&self, group: usize, seq: &SeqCache) -> Result<(), (usize, String)> {
        let first = self.groups[group].first_visible(seq.len) / self.block;
        let table = &seq.tables[group];
        if seq.len.div_ceil(self.block) > table.len() {
            return Err((table.len(), format!("{} positions computed, table has {} blocks", seq.len, table.len())));
        }
        for (at, &entry) in table.iter().enumerate() {
            // Of recurrent states some blocks are passed over; that of the latest position is there.
            let is_latest = seq.len > 0 && at == (seq.len - 1) / self.block;
            if entry < 0 && at >= seq.live_from[group] && self.groups[group].is_recurrent() && !is_latest {
                continue;
            }
            if (entry < 0) != (at < seq.live_from[group]) {
                return Err((at, format!("logical block holds {entry}, live from {}", seq.live_from[group])));
            }
            if entry < 0 && at >= first {
                return Err((at, format!("logical block is gone but visible from position {}", seq.len)));
            }
        }
        Ok(())
    }
}

/// A block's count must equal the tables that hold it; one that can be written has one holder and no key.
fn check_block(pool: &KvBlockPool, block: usize, holders: u32, writable: bool) -> Result<(), String> {
    let entry = &pool.blocks[block];
    if entry.refs != holders {
        return Err(format!("reference count {}, but {holders} tables hold it", entry.refs));
    }
    if writable && holders > 1 {
        return Err(format!("can be written but {holders} tables hold it"));
    }
    if writable && entry.key.is_some() {
        return Err("can be written but is published".to_owned());
    }
    if entry.key.is_some_and(|key| pool.find(&key) != Some(block as u32)) {
        return Err("has a key under which it is not found".to_owned());
    }
    Ok(())
}

/// Each unreferenced block is in exactly the list it belongs to; the index names only published blocks.
fn check_lists(pool: &KvBlockPool) -> Result<(), (usize, String)> {
    let mut listed = vec![0u32; pool.blocks.len()];
    for &block in &pool.free {
        listed[block as usize] += 1;
        if pool.blocks[block as usize].key.is_some() {
            return Err((block as usize, "is free but published".to_owned()));
        }
    }
    for (&when, &block) in &pool.evictable {
        listed[block as usize] += 1;
        let entry = &pool.blocks[block as usize];
        if entry.key.is_none() || entry.released_at != when {
            return Err((block as usize, "is in the eviction order but not cached there".to_owned()));
        }
    }
    for (block, (&listed, entry)) in listed.iter().zip(&pool.blocks).enumerate() {
        if listed != u32::from(entry.refs == 0) {
            return Err((block, format!("{} references, {listed} times in the lists", entry.refs)));
        }
    }
    for (key, &block) in &pool.index {
        if pool.blocks[block as usize].key != Some(*key) {
            return Err((block as usize, "is found under a key it does not have".to_owned()));
        }
    }
    Ok(())
}
