//! Plans of this engine, from the folder of kept ones or compiled. What is wrong with a kept one is told, and changes
//! nothing else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use yirage_compile::{CompileError, CompileOptions, compile};
use yirage_ir::{Dims, Graph};
use yirage_plan::{Target, VerifiedPlan, WeightPlan};
use yirage_plancache::{CacheNotice, Interface, PlanFolder, PlanKey, PlanOrigin};

/// Where the plans of an engine came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlanCounts {
    /// Plans that were compiled.
    pub compiled: u64,
    /// Plans that were read from files, and proved.
    pub read: u64,
}

/// Plans from the folder of kept ones, if there is one. Copies count and tell in one place.
#[derive(Clone, Default)]
pub(crate) struct PlanProvider {
    folder: Option<PlanFolder>,
    state: Arc<Mutex<PlanProviderState>>,
}

#[derive(Default)]
struct PlanProviderState {
    notices: Vec<CacheNotice>,
    counts: PlanCounts,
}

impl PlanProvider {
    pub(crate) fn new(folder: Option<PlanFolder>) -> PlanProvider {
        PlanProvider { folder, ..PlanProvider::default() }
    }

    fn lock_state(&self) -> MutexGuard<'_, PlanProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan of `graph` for `bucket`.
    ///
    /// # Errors
    /// What the compiler says.
    pub(crate) fn plan(
        &self,
        graph: &Graph,
        bucket: Dims,
        target: &Target,
        weights: &WeightPlan,
        options: &CompileOptions,
    ) -> Result<VerifiedPlan, CompileError> {
        let make = || compile(graph, bucket, target, weights, options);
        let mut told = Vec::new();
        // The plan of a rank reads its part of the weights, which the graph says nothing of: it could not be compared.
        let (plan, origin) = match self.folder.as_ref().filter(|_| target.ranks <= 1) {
            None => (make()?, PlanOrigin::Compiled),
            Some(folder) => {
                let key = PlanKey::of(graph, bucket, target, options);
                folder.plan(&key, &Interface::of(graph), target, &mut told, make)?
            }
        };
        let mut known = self.lock_state();
        match origin {
            PlanOrigin::Compiled => known.counts.compiled += 1,
            PlanOrigin::File => known.counts.read += 1,
        }
        known.notices.append(&mut told);
        drop(known);
        Ok(plan)
    }

    /// Where plans came from so far.
    pub(crate) fn counts(&self) -> PlanCounts {
        self.lock_state().counts
    }

    /// What was told since the last call.
    pub(crate) fn take_notices(&self) -> Vec<CacheNotice> {
        std::mem::take(&mut self.lock_state().notices)
    }
}
