//! One call: the plan that is there, or one that is made now.

use crate::array::HostArray;
use crate::bound::BoundGraph;
use crate::call_error::CallError;
use crate::callable::{CallOptions, planned_with_kv_caches};
use crate::error::CacheError;
use crate::folder::PlanOrigin;
use crate::key::PlanKey;
use crate::mode::Mode;
use crate::notices::CacheNotice;
use crate::plan_lru::{CallKey, LoadedPlan, PlanCell, lock};
use crate::shared::PlanCacheContext;
use std::sync::{Arc, Mutex};
use yirage_hal::HalError;
use yirage_ir::Dims;
use yirage_plan::VerifiedPlan;

/// One call, whose inputs fit its graph.
pub(crate) struct CachedCall<'a> {
    pub(crate) shared: &'a PlanCacheContext,
    pub(crate) graph: &'a BoundGraph,
    pub(crate) inputs: &'a [HostArray],
    pub(crate) dims: Dims,
}

/// The outputs of a call, and how it ran.
type CallOutputs = (Vec<HostArray>, Mode);

impl CachedCall<'_> {
    /// Whether a plan was there, and what the call gives.
    pub(crate) fn answer(&self, fuse: bool, told: &mut Vec<CacheNotice>) -> (bool, Result<CallOutputs, CacheError>) {
        let key = CallKey::of(self.graph, &self.dims, fuse);
        let (place, hit) = lock(&self.shared.plans).enter(&key);
        let mut cell = lock(&place);
        let made = match &mut *cell {
            PlanCell::Failed(why) => return (hit, Err(why.clone())),
            PlanCell::Ready(loaded) => match loaded.callable.call(self.inputs) {
                Ok(outputs) => return (hit, Ok((outputs, loaded.mode))),
                Err(why) if loaded.mode == Mode::Fusion && self.falls_back(&why) => {
                    // Its memory is there for what takes its place.
                    *cell = PlanCell::Empty;
                    self.fall_back(&key, why, told)
                }
                Err(why) => return (hit, Err(why.into())),
            },
            PlanCell::Empty => self.first_call(&key, fuse, told),
        };
        match made {
            Ok((loaded, outputs)) => {
                let mode = loaded.mode;
                self.keep(&key, &place, &loaded, told);
                *cell = PlanCell::Ready(Box::new(loaded));
                (hit, Ok((outputs, mode)))
            }
            Err(why) => {
                *cell = PlanCell::Failed(why.clone());
                lock(&self.shared.plans).forget(&key, &place);
                (hit, Err(why))
            }
        }
    }

    /// Makes a plan and runs it for the first time.
    fn first_call(
        &self,
        key: &CallKey,
        fuse: bool,
        told: &mut Vec<CacheNotice>,
    ) -> Result<(LoadedPlan, Vec<HostArray>), CacheError> {
        let mode = if fuse { Mode::Fusion } else { Mode::GraphReplay };
        match self.first(key, mode, told) {
            Ok(made) => {
                if fuse {
                    let stats = &mut lock(&self.shared.plans).stats;
                    stats.fusion_attempts += 1;
                    stats.fusion_successes += 1;
                }
                Ok(made)
            }
            Err(why) if fuse && self.falls_back(&why) => self.fall_back(key, why, told),
            Err(why) => Err(why.into()),
        }
    }

    /// The plan without fusion in the place of a fused one that failed.
    fn fall_back(
        &self,
        key: &CallKey,
        fused: CallError,
        told: &mut Vec<CacheNotice>,
    ) -> Result<(LoadedPlan, Vec<HostArray>), CacheError> {
        let why = fused.to_string();
        let both = |unfused| CacheError::Both { fused: Box::new(fused), unfused: Box::new(unfused) };
        let made = self.first(key, Mode::GraphReplay, told).map_err(both)?;
        told.push(CacheNotice::FellBack { why });
        let stats = &mut lock(&self.shared.plans).stats;
        stats.fusion_attempts += 1;
        stats.fusion_fallbacks += 1;
        Ok(made)
    }

    /// Whether another plan may do what this one could not: not where the device is gone.
    fn falls_back(&self, why: &CallError) -> bool {
        self.shared.options.fallback_on_error && !matches!(why, CallError::Device(HalError::Lost(_)))
    }

    /// Makes a plan, loads it and runs it.
    fn first(
        &self,
        key: &CallKey,
        mode: Mode,
        told: &mut Vec<CacheNotice>,
    ) -> Result<(LoadedPlan, Vec<HostArray>), CallError> {
        let plan = self.plan(mode == Mode::Fusion, told)?;
        let device = &*self.shared.device;
        let weights = lock(&self.shared.plans).weights(self.graph);
        let callable = {
            let mut held = weights.device_weights();
            let bytes = |entry| device.weight_bytes(entry).map_err(CallError::from);
            let sum = |entries: Vec<_>| entries.into_iter().map(bytes).sum::<Result<u64, CallError>>();
            let missing = held.missing(&plan);
            let dropped = lock(&self.shared.plans).evict_for(key, plan.arena.saturating_add(sum(missing)?));
            drop(dropped);
            let loaded = held.load(device, &plan, weights.arrays());
            // What was put there is there, also where the rest was refused.
            weights.set_bytes(sum(held.all().map(|(entry, _)| entry).collect())?);
            loaded?;
            self.graph.load(device, &plan, &held, self.dims)?
        };
        let mut loaded = LoadedPlan { callable, mode, arena: plan.arena, weights };
        for _ in 0..self.shared.options.warmup {
            loaded.callable.run(self.inputs)?;
        }
        let outputs = loaded.callable.call(self.inputs)?;
        Ok((loaded, outputs))
    }

    /// The plan, from a file or compiled.
    fn plan(&self, fuse: bool, told: &mut Vec<CacheNotice>) -> Result<VerifiedPlan, CallError> {
        let (shared, graph) = (self.shared, self.graph);
        let options = CallOptions { dims: self.dims, precision: shared.options.precision, fuse };
        let compile = || planned_with_kv_caches(&graph.graph, &shared.target, &options);
        let before = told.len();
        let (plan, origin) = match &shared.options.folder {
            None => (compile()?, PlanOrigin::Compiled),
            Some(folder) => {
                let (bucket, how) = (options.bucket(), options.compiling());
                let key = PlanKey::of_hashes(graph.hash, graph.interface_hash, bucket, &shared.target, &how);
                folder.plan(&key, &graph.interface, &shared.target, told, compile)?
            }
        };
        let stats = &mut lock(&shared.plans).stats;
        match origin {
            PlanOrigin::Compiled => stats.compiled += 1,
            PlanOrigin::File => stats.read += 1,
        }
        stats.refused +=
            told[before..].iter().filter(|told| matches!(told, CacheNotice::Refused { .. })).count() as u64;
        Ok(plan)
    }

    /// Writes down what a place holds.
    fn keep(&self, key: &CallKey, place: &Arc<Mutex<PlanCell>>, loaded: &LoadedPlan, told: &mut Vec<CacheNotice>) {
        let shown = (self.graph.interface.graph.as_str(), self.dims);
        let (too_many, dropped) = lock(&self.shared.plans).insert(key, place, shown, loaded);
        drop(dropped);
        if let Some(bytes) = too_many {
            told.push(CacheNotice::NotKept { bytes, limit: self.shared.options.bytes });
        }
    }
}
