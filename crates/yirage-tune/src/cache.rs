//! Kept results: those of this process, and those on disk.

use crate::disk::TuneCacheFolder;
use crate::entry;
use crate::key::TuneKey;
use crate::limits::MEMORY_BYTES;
use crate::options::SuperOptions;
use crate::outcome::{SearchOutcome, SearchResultOrigin};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use yirage_ir::Graph;

/// How often results were found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TuneCacheCounters {
    /// Results that this process had.
    pub memory_hits: u64,
    /// Results that lay on disk.
    pub disk_hits: u64,
    /// Searches, because nothing was kept.
    pub misses: u64,
    /// Entries that were not believed.
    pub refusals: u64,
    /// Entries that made room for others.
    pub removed: u64,
}

/// Kept results. Threads may share it.
#[derive(Debug)]
pub struct TuneCache {
    folder: Option<TuneCacheFolder>,
    limit: u64,
    memory: Mutex<TuneMemoryCache>,
}

#[derive(Debug, Default)]
struct TuneMemoryCache {
    entries: BTreeMap<TuneKey, TuneCacheEntry>,
    bytes: u64,
    turn: u64,
    counters: TuneCacheCounters,
}

#[derive(Debug)]
struct TuneCacheEntry {
    text: Arc<str>,
    used: u64,
}

impl TuneCache {
    /// Results of this process, and those in `folder` if there is one.
    pub fn new(folder: Option<TuneCacheFolder>) -> TuneCache {
        TuneCache::with_limit(folder, MEMORY_BYTES)
    }

    /// [`TuneCache::new`] with at most so many bytes of results in the process.
    pub fn with_limit(folder: Option<TuneCacheFolder>, limit: u64) -> TuneCache {
        TuneCache { folder, limit, memory: Mutex::default() }
    }

    /// How often results were found.
    pub fn counters(&self) -> TuneCacheCounters {
        self.lock().counters
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TuneMemoryCache> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result that is kept for a graph. Why one was not believed goes to `notes`.
    pub(crate) fn find(
        &self,
        key: &TuneKey,
        graph: &Graph,
        options: &SuperOptions,
        notes: &mut Vec<String>,
    ) -> Option<SearchOutcome> {
        let refused = |told: &str, why: String, notes: &mut Vec<String>| {
            notes.push(format!("the result {told} was refused and is searched again: {why}"));
            self.lock().counters.refusals += 1;
        };
        if options.use_graph_dataset
            && let Some(text) = self.in_process(key)
        {
            match entry::parse(&text, key, graph, SearchResultOrigin::Memory) {
                Ok(outcome) => {
                    self.lock().counters.memory_hits += 1;
                    return Some(outcome);
                }
                Err(why) => refused("in the process", why, notes),
            }
        }
        if options.use_cached_graphs
            && let Some(folder) = &self.folder
        {
            let parsed = match folder.0.read(key.id()) {
                Ok(None) => None,
                Ok(Some(text)) => {
                    Some(entry::parse(&text, key, graph, SearchResultOrigin::Disk).map(|outcome| (text, outcome)))
                }
                Err(error) => Some(Err(error.to_string())),
            };
            match parsed {
                None => {}
                Some(Ok((text, outcome))) => {
                    self.lock().counters.disk_hits += 1;
                    if options.use_graph_dataset {
                        self.insert_in_memory(key, text);
                    }
                    return Some(outcome);
                }
                Some(Err(why)) => refused("on disk", why, notes),
            }
        }
        self.lock().counters.misses += 1;
        None
    }

    /// Keeps a result: on disk what another process would find as well, so not where the time limit `cut` the search short
    /// of it. What keeps it from the disk is told, and changes nothing else.
    pub(crate) fn insert(&self, key: &TuneKey, outcome: &mut SearchOutcome, options: &SuperOptions, cut: bool) {
        let fleeting = match (outcome.is_disturbed(), cut) {
            (true, _) => Some("something else was at work while candidates were measured"),
            (false, true) => Some("the time limit ended the search before all candidates were measured"),
            (false, false) => None,
        };
        let folder = self.folder.as_ref().filter(|_| options.use_cached_graphs);
        if let (Some(why), Some(_)) = (fleeting, folder) {
            outcome.notes.push(format!("{why}: the result is not kept on disk"));
        }
        let text = entry::print(key, outcome);
        if fleeting.is_none()
            && let Some(folder) = folder
        {
            match folder.0.write(key.id(), &text) {
                Ok(removed) => self.lock().counters.removed += removed as u64,
                Err(error) => outcome.notes.push(format!("the result is not kept on disk: {error}")),
            }
        }
        if options.use_graph_dataset {
            self.insert_in_memory(key, text);
        }
    }

    fn in_process(&self, key: &TuneKey) -> Option<Arc<str>> {
        let mut kept = self.lock();
        kept.turn += 1;
        let turn = kept.turn;
        let entry = kept.entries.get_mut(key)?;
        entry.used = turn;
        Some(entry.text.clone())
    }

    fn insert_in_memory(&self, key: &TuneKey, text: String) {
        let mut kept = self.lock();
        if let Some(old) = kept.entries.remove(key) {
            kept.bytes -= old.text.len() as u64;
        }
        let bytes = text.len() as u64;
        if bytes > self.limit {
            return;
        }
        while kept.bytes > self.limit - bytes {
            let Some(oldest) = kept.entries.iter().min_by_key(|(_, e)| e.used).map(|(key, _)| key.clone()) else {
                break;
            };
            if let Some(old) = kept.entries.remove(&oldest) {
                kept.bytes -= old.text.len() as u64;
                kept.counters.removed += 1;
            }
        }
        kept.turn += 1;
        let used = kept.turn;
        kept.bytes += bytes;
        kept.entries.insert(key.clone(), TuneCacheEntry { text: text.into(), used });
    }
}
