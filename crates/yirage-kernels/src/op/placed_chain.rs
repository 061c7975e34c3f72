//! Chains whose operands have a place, and what they read.

use super::NodeView;
use crate::elements::Elements;
use crate::expression::evaluate;
use crate::node_kernel::Operand;
use crate::scope::KernelScope;
use crate::strided_index::element;
use yirage_hal::HalError;
use yirage_ir::Strided;
use yirage_ir::region::{ChainRead, ElementExpr, FusedChain};
use yirage_kir::{KernelWriter, Register};

/// A chain with where its operands lie.
#[derive(Clone, Debug)]
pub(crate) struct PlacedChain {
    pub(crate) chain: FusedChain,
    /// What the chain's inputs are.
    pub(crate) ins: Vec<Operand>,
    /// Where its output goes.
    pub(crate) out: Operand,
}

impl PlacedChain {
    /// The chains of a node: of a region of them, or of a single op that is one.
    pub(crate) fn of(view: &NodeView<'_>) -> Result<Vec<PlacedChain>, HalError> {
        let chains = FusedChain::of_node(view.graph, view.node).map_err(HalError::Load)?;
        let placed = |(chain, &out): (FusedChain, &Operand)| PlacedChain { chain, ins: view.ins.clone(), out };
        Ok(chains.into_iter().zip(&view.outs).map(placed).collect())
    }

    /// Declares what is read.
    pub(crate) fn reads(&self, scope: &mut KernelScope<'_>, reads: &[ChainRead]) -> ChainReads {
        ChainReads(reads.iter().map(|read| (scope.read(self.ins[read.input]), read.at.clone())).collect())
    }
}

/// Where a chain's reads lie.
pub(crate) struct ChainReads(Vec<(Elements, Strided)>);

impl ChainReads {
    /// The elements at these coordinates.
    pub(crate) fn load(&self, w: &mut KernelWriter, coordinates: &[Register]) -> Vec<Register> {
        let load = |(elements, at): &(Elements, Strided)| {
            let at = element(w, at, coordinates);
            elements.load(w, at)
        };
        self.0.iter().map(load).collect()
    }
}

/// The value of an expression at coordinates of its shape, behind results of a core.
pub(crate) fn value(
    w: &mut KernelWriter,
    of: &ElementExpr,
    results: &[Register],
    reads: &ChainReads,
    coordinates: &[Register],
) -> Register {
    let mut inputs = results.to_vec();
    inputs.extend(reads.load(w, coordinates));
    evaluate(w, &of.expr, &inputs)
}
