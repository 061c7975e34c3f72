//! The plan cache of a device.

use crate::array::HostArray;
use crate::bound::BoundGraph;
use crate::call::CachedCall;
use crate::callable::{CallOptions, planned_with_kv_caches};
use crate::decide::decide;
use crate::error::CacheError;
use crate::fusion::FusionDecision;
use crate::mode::Mode;
use crate::native::NativePlans;
use crate::notices::CacheNotice;
use crate::options::CacheOptions;
use crate::plan_lru::{PlanLru, lock};
use crate::shared::PlanCacheContext;
use crate::stats::PlanCacheStats;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use yirage_hal::Device;
use yirage_ir::Dims;

/// Plans of graphs on a device, made when they are first called for and replayed afterwards. Threads may share it: calls of
/// one plan run one after the other, and a plan that several call for at once is made once.
pub struct PlanCache {
    shared: PlanCacheContext,
    enabled: AtomicBool,
}

/// What a call gave.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// The outputs, in memory of their own, dense and in row-major order.
    pub outputs: Vec<HostArray>,
    /// How it ran, which is not always how it was to run: `told` says why.
    pub mode: Mode,
    /// Whether the plan was there before. Of [`Mode::Native`] none ever is.
    pub hit: bool,
    /// What happened beside the result.
    pub notices: Vec<CacheNotice>,
}

impl PlanCache {
    /// An empty cache of a device's plans.
    pub fn new(device: Arc<dyn Device>, options: CacheOptions) -> PlanCache {
        let target = device.target();
        let kept = Mutex::new(PlanLru::new(options.bytes));
        let enabled = AtomicBool::new(options.enable_fusion);
        PlanCache {
            shared: PlanCacheContext { device, target, options, plans: kept, native: NativePlans::default() },
            enabled,
        }
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.shared.device
    }

    /// How plans are made and kept.
    pub fn options(&self) -> &CacheOptions {
        &self.shared.options
    }

    /// Whether the device has kernels for fused nodes.
    pub fn fusion_available(&self) -> bool {
        self.shared.target.kernels.iter().any(|kernel| !kernel.regions.is_empty())
    }

    /// Whether plans are kept and fused. While they are not, every call is [`Mode::Native`] and nothing is counted.
    pub fn fusion_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Has plans kept and fused, or not. Plans that are kept stay.
    pub fn set_fusion_enabled(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::Relaxed);
    }

    /// Runs a graph once with these inputs. Sizes of symbols are those that the inputs have.
    ///
    /// # Errors
    /// [`CacheError::Call`] for inputs that are not the graph's, which nothing is counted of, and for what the compiler or the
    /// device says; [`CacheError::Both`] where a fused plan failed and the one without fusion too.
    pub fn call(&self, graph: &BoundGraph, inputs: &[HostArray], mode: Mode) -> Result<CallOutcome, CacheError> {
        let dims = graph.dims(inputs)?;
        if mode == Mode::Native || !self.fusion_enabled() {
            return self.native(graph, inputs, dims);
        }
        let mut told = Vec::new();
        let mut fuse = mode == Mode::Fusion;
        if fuse {
            let decision = self.should_fuse(graph, inputs)?;
            fuse = decision.fuse();
            if !fuse {
                told.push(CacheNotice::NotFused(decision));
            }
        }
        let call = CachedCall { shared: &self.shared, graph, inputs, dims };
        let (hit, answered) = call.answer(fuse, &mut told);
        if answered.is_err() {
            lock(&self.shared.plans).stats.errors += 1;
        }
        answered.map(|(outputs, mode)| CallOutcome { outputs, mode, hit, notices: told })
    }

    /// Whether a call in [`Mode::Fusion`] would be fused, and why.
    ///
    /// # Errors
    /// [`CacheError::Call`] for inputs that are not the graph's.
    pub fn should_fuse(&self, graph: &BoundGraph, inputs: &[HostArray]) -> Result<FusionDecision, CacheError> {
        let dims = graph.dims(inputs)?;
        Ok(decide(&self.shared.options, graph, &dims, inputs))
    }

    fn native(&self, graph: &BoundGraph, inputs: &[HostArray], dims: Dims) -> Result<CallOutcome, CacheError> {
        let options = CallOptions { dims, precision: self.shared.options.precision, fuse: false };
        let device = &*self.shared.device;
        let compile = || planned_with_kv_caches(&graph.graph, &self.shared.target, &options);
        let plan = self.shared.native.get(graph, options.bucket(), compile)?;
        // Weights that kept plans have on the device are used there.
        let set = lock(&self.shared.plans).known_weights(graph);
        let mut held = set.map_or_else(|| graph.resident_weights(), |set| set.device_weights().clone());
        held.load(device, &plan, &graph.weights)?;
        let mut callable = graph.load(device, &plan, &held, dims)?;
        Ok(CallOutcome { outputs: callable.call(inputs)?, mode: Mode::Native, hit: false, notices: Vec::new() })
    }

    /// Plans that were compiled for calls in native mode. [`PlanCache::stats`] has nothing of these calls.
    pub fn native_compilations(&self) -> u64 {
        self.shared.native.compiled()
    }

    /// Drops all plans and what they hold on the device. A plan that runs ends first; its memory goes with its call. What was
    /// counted stays.
    pub fn clear(&self) {
        // Dropped behind the lock.
        let dropped = lock(&self.shared.plans).clear();
        drop(dropped);
        self.shared.native.clear();
    }

    /// What was done so far, and what is kept.
    pub fn stats(&self) -> PlanCacheStats {
        let kept = lock(&self.shared.plans);
        PlanCacheStats {
            enabled: self.fusion_enabled(),
            fusion_available: self.fusion_available(),
            bytes: kept.bytes(),
            plans: kept.plans(),
            ..kept.stats.clone()
        }
    }
}
