//! Chains whose operands have a place, and what they read.

use super::NodeView;
use crate::elements::{Elements, elements_per_word};
use crate::expression::{cast, evaluate};
use crate::node_kernel::Operand;
use crate::scope::KernelScope;
use crate::strided_index::element;
use yirage_hal::HalError;
use yirage_ir::region::{ChainRead, ElementExpr, FusedChain};
use yirage_ir::{DType, Strided};
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
        let read = |read: &ChainRead| PlacedRead::new(scope.read(self.ins[read.input]), read.at.clone());
        ChainReads(reads.iter().map(read).collect())
    }
}

/// Elements that are read at coordinates of an expression.
#[derive(Clone, Debug)]
pub(crate) struct PlacedRead {
    pub(crate) elements: Elements,
    /// Where they lie.
    pub(crate) at: Strided,
    /// Elements of the memory before all of them, where a kernel has to compute that.
    pub(crate) first: Option<Register>,
    /// What they are rounded to, where they lie in a wider type.
    pub(crate) rounded: Option<DType>,
}

impl PlacedRead {
    /// Elements that lie where strides say.
    pub(crate) fn new(elements: Elements, at: Strided) -> PlacedRead {
        PlacedRead { elements, at, first: None, rounded: None }
    }

    /// The element at these coordinates.
    pub(crate) fn load(&self, w: &mut KernelWriter, coordinates: &[Register]) -> Register {
        let own = element(w, &self.at, coordinates);
        let at = self.first.map_or(own, |first| w.add(first, own));
        let x = self.elements.load(w, at);
        self.rounded.map_or(x, |dtype| cast(w, dtype, x))
    }
}

/// What a chain reads.
pub(crate) struct ChainReads(pub(crate) Vec<PlacedRead>);

impl ChainReads {
    /// The elements at these coordinates.
    pub(crate) fn load(&self, w: &mut KernelWriter, coordinates: &[Register]) -> Vec<Register> {
        self.0.iter().map(|read| read.load(w, coordinates)).collect()
    }
}

/// A result of a chain's core as what follows the core reads it: rounded to the core's type.
pub(crate) fn core_result(w: &mut KernelWriter, chain: &FusedChain, result: Register) -> Register {
    match chain.core_dtype {
        Some(dtype) if elements_per_word(dtype) == 2 => cast(w, dtype, result),
        _ => result,
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
