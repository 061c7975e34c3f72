//! The kernels: the references of the ops, one launch a node of the plan.

use yirage_hal::HalError;
use yirage_hal::driver::{KernelArg, Launch, Library, ModuleId, ValueAddresses};
use yirage_hal::reference;
use yirage_ir::{Dims, text};
use yirage_plan::{Plan, Target};

/// The name that plans have for the one kernel.
const KERNEL: &str = "sim/eval@1";

/// The library.
pub(crate) struct References;

impl Library for References {
    fn target(&self) -> Target {
        reference::target("sim", KERNEL)
    }

    /// The plan's graph in its text form: what a compiler of a real device makes of its own language.
    fn code(&self, plan: &Plan) -> Result<Vec<u8>, HalError> {
        Ok(text::print(&plan.graph).into_bytes())
    }

    /// The sizes of the step, then where each input and each output lies; of a cache state how many blocks it has, too.
    fn launches(
        &self,
        plan: &Plan,
        module: ModuleId,
        step: usize,
        dims: &Dims,
        places: &dyn ValueAddresses,
    ) -> Result<Vec<Launch>, HalError> {
        let number = plan.steps[step].node;
        let node = &plan.graph.nodes[number as usize];
        let mut args: Vec<KernelArg> = [dims.tokens, dims.seqs, dims.blocks, dims.rows].map(KernelArg::U32).into();
        for &value in node.ins.iter().chain(&node.outs) {
            args.push(KernelArg::Address(places.address(value)?));
            if plan.graph.kv_cache_of(value).is_some() {
                args.push(KernelArg::U32(places.blocks(value)?));
            }
        }
        Ok(vec![Launch { module, entry: number.to_string(), grid: [1; 3], block: [1; 3], args }])
    }
}
