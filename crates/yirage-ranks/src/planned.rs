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

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_engine::{EngineOptions, plan_step};
    use yirage_hal::reference::Reference;
    use yirage_hal::{Backend, OpenOptions};
    use yirage_ir::{DType, Dims, NodeKind};
    use yirage_model::Checkpoint;
    use yirage_testkit::tiny;

    fn reference() -> Arc<dyn Device> {
        Reference::new().open(0, &OpenOptions::default()).unwrap().0
    }

    #[test]
    fn a_rank_that_is_planned_has_its_part_and_runs_nothing() {
        let checkpoint = Checkpoint::open(tiny::model("llama")).unwrap();
        let planned = |ranks| {
            let rank = PlannedRank::new(reference(), ranks, ExpertDivision::Rows).unwrap();
            let step = plan_step(&checkpoint, &rank, &EngineOptions::default(), 3, &mut Vec::new()).unwrap();
            let bytes: u64 = step.plan.weights.entries.iter().map(|entry| rank.weight_bytes(entry).unwrap()).sum();
            let is_collective = |kind: &NodeKind| matches!(kind, NodeKind::Op(op) if op.ranks().is_some());
            let collectives = step.plan.graph.nodes.iter().filter(|node| is_collective(&node.kind)).count();
            (rank, step.plan, bytes, collectives)
        };
        let (_, _, whole, none) = planned(1);
        let (rank, plan, part, some) = planned(2);
        assert!(none == 0 && some > 0, "{none} and {some} collectives");
        assert!(part > whole / 2 && part < whole * 3 / 4, "norms are on both ranks: {part} of {whole} bytes");
        let unsupported =
            |error: HalError| assert!(error.to_string().contains("planned and were not started"), "{error}");
        unsupported(rank.weight(&plan.weights.entries[0]).err().unwrap());
        unsupported(rank.load(&plan, &Bindings::default()).err().unwrap());
        let block = Type::new(DType::F32, [32, 1, 8]);
        unsupported(rank.kv_cache(&block, 4, 2).err().unwrap());
        assert!(rank.kv_block_bytes(&block, 4).unwrap() >= block.bytes(&Dims::default()) as u64);
    }

    #[test]
    fn ranks_of_ranks_and_none_are_refused() {
        let refused = |device, ranks| PlannedRank::new(device, ranks, ExpertDivision::Rows).err().unwrap().to_string();
        assert!(refused(reference(), 0).contains("0 ranks of a device made for 1"));
        let two = PlannedRank::new(reference(), 2, ExpertDivision::Rows).unwrap();
        assert!(refused(Arc::new(two), 2).contains("2 ranks of a device made for 2"));
    }
}
