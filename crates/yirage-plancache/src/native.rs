//! Plans of calls in native mode. A plan is compiled once for its sizes, and loaded for each call and dropped after it: what
//! is kept here lies in the host's memory, holds nothing of the device and is no part of the statistics.

use crate::bound::BoundGraph;
use crate::limits::NATIVE_PLANS;
use crate::plan_lru::lock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use yirage_ir::Dims;
use yirage_plan::VerifiedPlan;

/// What a plan depends on. The device, the precision and the compiler are the cache's, and no op is fused.
#[derive(Clone, Copy, PartialEq, Eq)]
struct NativePlanKey {
    graph: u128,
    interface: u128,
    bucket: Dims,
}

/// Plans that were compiled, the one used last at the end.
#[derive(Default)]
pub(crate) struct NativePlans {
    plans: Mutex<VecDeque<(NativePlanKey, Arc<VerifiedPlan>)>>,
    compiled: AtomicU64,
}

impl NativePlans {
    /// The plan of `graph` for `bucket`, compiled where it is not there. Callers that miss it at once each compile it, and the
    /// plans are equal.
    ///
    /// # Errors
    /// Those of `compile`.
    pub(crate) fn get<E>(
        &self,
        graph: &BoundGraph,
        bucket: Dims,
        compile: impl FnOnce() -> Result<VerifiedPlan, E>,
    ) -> Result<Arc<VerifiedPlan>, E> {
        let key = NativePlanKey { graph: graph.hash, interface: graph.interface_hash, bucket };
        {
            let mut plans = lock(&self.plans);
            let found = plans.iter().position(|(other, _)| *other == key).and_then(|at| plans.remove(at));
            if let Some(entry) = found {
                let plan = entry.1.clone();
                plans.push_back(entry);
                return Ok(plan);
            }
        }
        let plan = Arc::new(compile()?);
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let mut plans = lock(&self.plans);
        if !plans.iter().any(|(other, _)| *other == key) {
            plans.push_back((key, plan.clone()));
        }
        while plans.len() > NATIVE_PLANS {
            plans.pop_front();
        }
        Ok(plan)
    }

    /// How many were compiled so far.
    pub(crate) fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// Drops all of them.
    pub(crate) fn clear(&self) {
        lock(&self.plans).clear();
    }
}
