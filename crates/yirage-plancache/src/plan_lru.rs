//! Which plans are kept, and what they take. Locks here are held for moments: nothing is compiled, loaded or run under them.

use crate::array::HostArray;
use crate::bound::{BoundGraph, WeightNames};
use crate::callable::{Callable, ResidentWeights};
use crate::mode::Mode;
use crate::stats::{CachedPlan, PlanCacheStats};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use yirage_ir::Dims;
use yirage_ir::hash::fnv128;

/// What a kept plan belongs to in the process. The device, the precision and the compiler are the cache's.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CallKey {
    graph: u128,
    interface: u128,
    weights: WeightNames,
    sizes: [u32; 4],
    fuse: bool,
}

impl CallKey {
    pub(crate) fn of(graph: &BoundGraph, dims: &Dims, fuse: bool) -> CallKey {
        CallKey {
            graph: graph.hash,
            interface: graph.interface_hash,
            weights: graph.weight_names.clone(),
            sizes: [dims.tokens, dims.seqs, dims.blocks, dims.rows],
            fuse,
        }
    }

    /// A number for people, the same in every process: of all but the weights.
    fn id(&self) -> u64 {
        let words = [self.graph, self.interface, u128::from(self.fuse)];
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        let sizes = self.sizes.iter().flat_map(|size| size.to_le_bytes());
        fnv128(&bytes.chain(sizes).collect::<Vec<u8>>()) as u64
    }
}

/// Weights on the device, for all plans that read the same arrays.
pub(crate) struct WeightSet {
    /// As long as they live no other array has their memory, which is their name.
    arrays: Arc<[(String, HostArray)]>,
    device_weights: Mutex<ResidentWeights>,
    /// Whether somebody else put them there, who keeps them as long as he wants.
    lent: bool,
    bytes: AtomicU64,
}

impl WeightSet {
    pub(crate) fn arrays(&self) -> &[(String, HostArray)] {
        &self.arrays
    }

    pub(crate) fn device_weights(&self) -> MutexGuard<'_, ResidentWeights> {
        lock(&self.device_weights)
    }

    /// Bytes that they take on the device.
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(if self.lent { 0 } else { bytes }, Ordering::Relaxed);
    }
}

/// A plan that is loaded.
pub(crate) struct LoadedPlan {
    pub(crate) callable: Callable,
    pub(crate) mode: Mode,
    /// Bytes of its arena.
    pub(crate) arena: u64,
    pub(crate) weights: Arc<WeightSet>,
}

/// A place for a plan. Whoever locks it first makes the plan.
#[derive(Default)]
pub(crate) enum PlanCell {
    /// Nobody has made it yet.
    #[default]
    Empty,
    /// It is loaded.
    Ready(Box<LoadedPlan>),
    /// It could not be made. Calls that waited for it are told why; it is no longer kept.
    Failed(crate::CacheError),
}

/// What is kept of one key.
struct PlanEntry {
    cell: Arc<Mutex<PlanCell>>,
    used: u64,
    plan: Option<PlanFootprint>,
}

/// What is known of a plan that was made.
struct PlanFootprint {
    shown: CachedPlan,
    arena: u64,
    weights: Arc<WeightSet>,
}

/// Which plans are kept.
pub(crate) struct PlanLru {
    entries: BTreeMap<CallKey, PlanEntry>,
    sets: BTreeMap<WeightNames, Weak<WeightSet>>,
    turn: u64,
    limit: u64,
    pub(crate) stats: PlanCacheStats,
}

impl PlanLru {
    pub(crate) fn new(limit: u64) -> PlanLru {
        PlanLru { entries: BTreeMap::new(), sets: BTreeMap::new(), turn: 0, limit, stats: PlanCacheStats::default() }
    }

    /// The place of a key, which is made where there is none; whether that was so is counted.
    pub(crate) fn enter(&mut self, key: &CallKey) -> (Arc<Mutex<PlanCell>>, bool) {
        self.turn += 1;
        let used = self.turn;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.used = used;
            self.stats.cache_hits += 1;
            return (entry.cell.clone(), true);
        }
        let cell = Arc::new(Mutex::default());
        self.entries.insert(key.clone(), PlanEntry { cell: cell.clone(), used, plan: None });
        self.stats.cache_misses += 1;
        self.stats.recordings += 1;
        (cell, false)
    }

    /// The weights of a graph, of which plans that are made at the same time have one set.
    pub(crate) fn weights(&mut self, graph: &BoundGraph) -> Arc<WeightSet> {
        self.sets.retain(|_, set| set.strong_count() > 0);
        if let Some(set) = self.sets.get(&graph.weight_names).and_then(Weak::upgrade) {
            return set;
        }
        let (held, lent) = (Mutex::new(graph.resident_weights()), graph.resident.is_some());
        let set =
            Arc::new(WeightSet { arrays: graph.weights.clone(), device_weights: held, lent, bytes: AtomicU64::new(0) });
        self.sets.insert(graph.weight_names.clone(), Arc::downgrade(&set));
        set
    }

    /// The weights of a graph that plans hold now.
    pub(crate) fn known_weights(&self, graph: &BoundGraph) -> Option<Arc<WeightSet>> {
        self.sets.get(&graph.weight_names).and_then(Weak::upgrade)
    }

    /// Writes down what a place holds, and makes room for it: the bytes that are too many, where it is not kept for them.
    /// The places that are given are to be dropped without the lock.
    pub(crate) fn insert(
        &mut self,
        key: &CallKey,
        cell: &Arc<Mutex<PlanCell>>,
        shown: (&str, Dims),
        loaded: &LoadedPlan,
    ) -> (Option<u64>, Vec<Arc<Mutex<PlanCell>>>) {
        // While it was made, everything may have been dropped, and made again.
        let Some(entry) = self.entries.get_mut(key).filter(|entry| Arc::ptr_eq(&entry.cell, cell)) else {
            return (None, Vec::new());
        };
        let bytes = loaded.arena.saturating_add(loaded.weights.bytes());
        if bytes > self.limit {
            self.entries.remove(key);
            return (Some(bytes), Vec::new());
        }
        let (graph, dims) = (shown.0.to_owned(), shown.1);
        let steps = loaded.callable.kernels().len();
        entry.plan = Some(PlanFootprint {
            shown: CachedPlan { id: key.id(), graph, dims, mode: loaded.mode, steps },
            arena: loaded.arena,
            weights: loaded.weights.clone(),
        });
        (None, self.evict_for(key, 0))
    }

    /// Drops what was used longest ago until `wanted` more bytes keep to the limit, but for the place of `key`.
    pub(crate) fn evict_for(&mut self, key: &CallKey, wanted: u64) -> Vec<Arc<Mutex<PlanCell>>> {
        let mut dropped = Vec::new();
        // What does not fit alone is not kept, so that nothing goes for it.
        while wanted <= self.limit && self.bytes().saturating_add(wanted) > self.limit {
            let others = self.entries.iter().filter(|(other, entry)| *other != key && entry.plan.is_some());
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.used).map(|(other, _)| other.clone()) else {
                break;
            };
            dropped.extend(self.entries.remove(&oldest).map(|entry| entry.cell));
            self.stats.evicted += 1;
        }
        dropped
    }

    /// Forgets a place whose plan could not be made.
    pub(crate) fn forget(&mut self, key: &CallKey, cell: &Arc<Mutex<PlanCell>>) {
        if self.entries.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.cell, cell)) {
            self.entries.remove(key);
        }
    }

    /// Takes everything out.
    pub(crate) fn clear(&mut self) -> Vec<Arc<Mutex<PlanCell>>> {
        std::mem::take(&mut self.entries).into_values().map(|entry| entry.cell).collect()
    }

    /// Bytes on the device: arenas, and each set of weights once.
    pub(crate) fn bytes(&self) -> u64 {
        let plans = || self.entries.values().filter_map(|entry| entry.plan.as_ref());
        let sets: BTreeMap<*const WeightSet, u64> =
            plans().map(|made| (Arc::as_ptr(&made.weights), made.weights.bytes())).collect();
        sets.into_values().chain(plans().map(|made| made.arena)).fold(0, u64::saturating_add)
    }

    /// The kept plans, the one used last at the end.
    pub(crate) fn plans(&self) -> Vec<CachedPlan> {
        let mut plans: Vec<_> =
            self.entries.values().filter_map(|entry| Some((entry.used, entry.plan.as_ref()?.shown.clone()))).collect();
        plans.sort_by_key(|(used, _)| *used);
        plans.into_iter().map(|(_, plan)| plan).collect()
    }
}

/// The value behind a lock, also where a thread that held it ended.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
