//! A rank whose others nobody has started: what plans it would run, and what it would hold.

use crate::kernel::collective_kernel;
use std::sync::Arc;
use yirage_hal::{Bindings, Device, DeviceInfo, HalError, KvCacheHandle, MemoryReport, Program, RankPart, WeightSink};
use yirage_ir::Type;
use yirage_plan::{ExpertDivision, Target, VerifiedPlan, WeightEntry};

/// The collectives of plans that nothing runs.
const COLLECTIVES: &str = "planned.collectives";

/// A device as one rank of so many, to compile for and to ask for sizes. It holds nothing and runs nothing.
pub struct PlannedRank {
    device: Arc<dyn Device>,
    ranks: u32,
    experts: ExpertDivision,
}

impl PlannedRank {
    /// A device that is not a rank, as one of so many that share experts so.
    ///
    /// # Errors
    /// A device that is one of several already, and no rank at all.
    pub fn new(device: Arc<dyn Device>, ranks: u32, experts: ExpertDivision) -> Result<PlannedRank, HalError> {
        match (device.target().ranks, ranks) {
            (1, 1..) => Ok(PlannedRank { device, ranks, experts }),
            (made_for, _) => Err(HalError::Load(format!("{ranks} ranks of a device made for {made_for}"))),
        }
    }

    fn refused(&self, what: String) -> HalError {
        let why = format!("the {} ranks are planned and were not started", self.ranks);
        HalError::Unsupported { what, why }
    }
}

impl Device for PlannedRank {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn target(&self) -> Target {
        let mut target = Target { ranks: self.ranks, experts: self.experts, ..self.device.target() };
        if self.ranks > 1 {
            target.kernels.push(collective_kernel(COLLECTIVES, self.ranks));
        }
        target
    }

    fn memory(&self) -> MemoryReport {
        self.device.memory()
    }

    /// What the part of one rank takes: all have as much.
    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        self.device.weight_bytes(RankPart::of(entry, 0, self.ranks)?.entry())
    }

    fn kv_block_bytes(&self, block: &Type, k_width: u32) -> Result<u64, HalError> {
        self.device.kv_block_bytes(block, k_width)
    }

    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        Err(self.refused(format!("the weight `{}`", entry.name)))
    }

    fn kv_cache(&self, block: &Type, _: u32, blocks: usize) -> Result<KvCacheHandle, HalError> {
        Err(self.refused(format!("a cache of {blocks} blocks of {block}")))
    }

    fn load(&self, plan: &VerifiedPlan, _: &Bindings) -> Result<Box<dyn Program>, HalError> {
        Err(self.refused(format!("a plan of {} steps", plan.graph.nodes.len())))
    }
}
