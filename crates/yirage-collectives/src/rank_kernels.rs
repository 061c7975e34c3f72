//! The kernels of a device that is a rank: those of every device, and the collectives of its group.

use yirage_hal::HalError;
use yirage_hal::driver::{CollectiveCall, KernelCall, Library, PackedRows, ValueSlices, WeightPacking};
use yirage_plan::{Plan, Target, WeightEntry};
use yirage_ranks::collective_kernel;

/// The library of a rank.
pub struct RankKernels<L> {
    library: L,
    /// What plans call the collectives.
    name: String,
    ranks: u32,
}

impl<L: Library> RankKernels<L> {
    /// The library of one of so many ranks; of one alone it has no collectives.
    pub fn new(library: L, backend: &str, ranks: u32) -> RankKernels<L> {
        RankKernels { library, name: format!("{backend}/collective@1"), ranks }
    }

    fn is_collective(&self, plan: &Plan, step: usize) -> bool {
        plan.kernels[plan.steps[step].kernel as usize].name == self.name
    }
}

impl<L: Library> Library for RankKernels<L> {
    fn target(&self) -> Target {
        let mut target = self.library.target();
        if self.ranks > 1 {
            target.ranks = self.ranks;
            target.kernels.push(collective_kernel(&self.name, self.ranks));
        }
        target
    }

    fn weight_packing(&self, entry: &WeightEntry) -> Result<WeightPacking, HalError> {
        self.library.weight_packing(entry)
    }

    fn pack<'a>(&self, entry: &WeightEntry, first_row: usize, rows: &'a [u8]) -> Result<PackedRows<'a>, HalError> {
        self.library.pack(entry, first_row, rows)
    }

    /// Of the steps that are kernels.
    fn code(&self, plan: &Plan) -> Result<Vec<u8>, HalError> {
        let mut computed = plan.clone();
        computed.steps = (0..plan.steps.len())
            .filter(|step| !self.is_collective(plan, *step))
            .map(|step| plan.steps[step].clone())
            .collect();
        self.library.code(&computed)
    }

    fn calls(&self, plan: &Plan, step: usize, values: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError> {
        if !self.is_collective(plan, step) {
            return self.library.calls(plan, step, values);
        }
        let node = &plan.graph.nodes[plan.steps[step].node as usize];
        Ok(vec![KernelCall::Collective(CollectiveCall::of(&plan.graph, node, values)?)])
    }
}
