//! Chains by themselves: maps and views around at most one reduction or contraction, one kernel an output.

use super::output_words::words;
use super::placed_chain::{PlacedChain, value};
use super::{PlanSite, contract, reduce};
use crate::node_kernel::NodeKernel;
use yirage_hal::HalError;
use yirage_ir::region::Core;
use yirage_kir::{KernelWriter, Register};

/// The kernel that runs a chain.
pub(crate) fn kernel(site: &PlanSite<'_>, placed: &PlacedChain) -> Result<NodeKernel, HalError> {
    match &placed.chain.core {
        Core::None => plain(site, placed),
        Core::Reduce(op, of) => reduce::kernel(site, placed, op, of),
        Core::Contract(sides) => contract::kernel(site, placed, sides),
        Core::Matmuls(_) => Err(HalError::Load("a matmul with a weight is no chain".into())),
    }
}

/// An expression alone.
fn plain(site: &PlanSite<'_>, placed: &PlacedChain) -> Result<NodeKernel, HalError> {
    let after = &placed.chain.after;
    words(site, "map", &placed.chain.out, placed.out, |scope| {
        let reads = placed.reads(scope, &after.reads);
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| value(w, after, &[], &reads, coordinates))
    })
}
