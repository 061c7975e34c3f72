//! A fake paged cache: each cell holds the hash of the token history that wrote it.

use std::collections::BTreeSet;

use super::super::{Batch, BatchEntry};
use super::job::SchedSimRequest;
use crate::kv::{CacheGroup, GroupConfig};
use crate::limits::BLOCK;

pub(super) struct SchedSimDevice {
    groups: Vec<CacheGroup>,
    /// Per group, per slot; 0 was never written.
    cells: Vec<Vec<u64>>,
}

impl SchedSimDevice {
    pub(super) fn new(groups: &[GroupConfig]) -> Self {
        SchedSimDevice {
            groups: groups.iter().map(|config| config.group.clone()).collect(),
            cells: groups.iter().map(|config| vec![0; config.blocks as usize * BLOCK]).collect(),
        }
    }

    /// Runs a step: all entries write, then all entries read what their queries can see.
    pub(super) fn run<'a>(
        &mut self,
        batch: &Batch,
        job: impl Fn(&BatchEntry) -> &'a SchedSimRequest,
    ) -> Result<(), String> {
        let mut written = vec![BTreeSet::new(); self.groups.len()];
        for entry in &batch.entries {
            self.write(entry, job(entry), &mut written)?;
        }
        batch.entries.iter().try_for_each(|entry| self.read(entry, job(entry)))
    }

    fn write(
        &mut self,
        entry: &BatchEntry,
        job: &SchedSimRequest,
        written: &mut [BTreeSet<u32>],
    ) -> Result<(), String> {
        let start = entry.start as usize;
        let upto = start + entry.tokens.len();
        if job.tokens.get(start..start + entry.certain().len()) != Some(entry.certain()) {
            return Err(format!("sequence {} runs other tokens than its own at {start}..{upto}", entry.seq));
        }
        for (group, written) in written.iter_mut().enumerate() {
            for (position, &slot) in (start..upto).zip(&entry.slots[group]) {
                if !written.insert(slot) {
                    return Err(format!("group {group}: slot {slot} is written twice in step of {}", entry.seq));
                }
                let cell = self.cells[group].get_mut(slot as usize).ok_or("slot outside of the pool")?;
                *cell = job.history_with(entry.drafted(), position);
            }
        }
        Ok(())
    }

    /// Checks every key that some query of the entry sees.
    fn read(&self, entry: &BatchEntry, job: &SchedSimRequest) -> Result<(), String> {
        let start = entry.start as usize;
        let upto = start + entry.tokens.len();
        for (group, spec) in self.groups.iter().enumerate() {
            let first = spec.window().map_or(0, |window| (start + 1).saturating_sub(window as usize));
            for position in first..upto {
                let block = entry.tables[group].get(position / BLOCK).copied().unwrap_or(-2);
                let cell = usize::try_from(block)
                    .ok()
                    .and_then(|block| self.cells[group].get(block * BLOCK + position % BLOCK))
                    .ok_or_else(|| format!("sequence {} group {group}: no block at {position}", entry.seq))?;
                if *cell != job.history_with(entry.drafted(), position) {
                    return Err(format!("sequence {} group {group}: wrong entry at {position}", entry.seq));
                }
            }
        }
        Ok(())
    }
}
