//! A graph with its weights, checked and named once.

use crate::interface::interface_hash;
use std::sync::Arc;
use yirage_call::{Array, CallError, Interface};
use yirage_compile::CompileError;
use yirage_ir::{Dim, Dims, Graph, Sym};

/// Weights by name, and where they lie: in the process that is who they are.
pub(crate) type WeightNames = Arc<[(String, usize)]>;

/// A graph with its weights, checked and hashed once: what a [`PlanCache`](crate::PlanCache) is called with.
///
/// Two of equal graphs share plans where their weights are the same memory: copies of an [`Array`] are, an array made again
/// is not. Arrays do not change, so equal memory is equal values.
#[derive(Clone, Debug)]
pub struct BoundGraph {
    pub(crate) graph: Arc<Graph>,
    pub(crate) interface: Arc<Interface>,
    pub(crate) hash: u128,
    pub(crate) interface_hash: u128,
    pub(crate) weights: Arc<[(String, Array)]>,
    /// The weights by name, and where they lie.
    pub(crate) weight_names: WeightNames,
    /// Sizes of the symbols that no input has.
    others: Dims,
}

impl BoundGraph {
    /// A graph with its weights by name.
    ///
    /// # Errors
    /// [`CallError`]: a graph that is not sound or has cache states; a weight that is missing, of another type or not of the
    /// graph.
    pub fn new(graph: Graph, weights: Vec<(String, Array)>) -> Result<BoundGraph, CallError> {
        yirage_ir::verify(&graph).map_err(CompileError::from)?;
        let interface = Interface::of(&graph);
        interface.check_callable()?;
        interface.check_weights(&weights)?;
        let address = |(name, array): &(String, Array)| (name.clone(), array.bytes().as_ptr() as usize);
        let mut weight_names: Vec<(String, usize)> = weights.iter().map(address).collect();
        weight_names.sort_unstable();
        Ok(BoundGraph {
            hash: graph.structural_hash(),
            interface_hash: interface_hash(&interface),
            weight_names: weight_names.into(),
            graph: Arc::new(graph),
            interface: Arc::new(interface),
            weights: weights.into(),
            others: Dims::default(),
        })
    }

    /// The same with sizes of the symbols that no input has, such as the sequences of attention without a cache; otherwise
    /// there is none of them.
    #[must_use]
    pub fn with_sizes(self, others: Dims) -> BoundGraph {
        BoundGraph { others, ..self }
    }

    /// The sizes of a call with these inputs.
    pub(crate) fn dims(&self, inputs: &[Array]) -> Result<Dims, CallError> {
        let mut dims = self.interface.dims(inputs)?;
        let has = |sym: Sym| self.interface.slots.iter().any(|(_, ty)| ty.shape.contains(&Dim::Sym(sym)));
        Sym::ALL.into_iter().filter(|&sym| !has(sym)).for_each(|sym| dims.set(sym, self.others.get(sym)));
        Ok(dims)
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What it takes and gives.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Elements of its largest value in a call of these sizes.
    pub(crate) fn largest(&self, dims: &Dims) -> u64 {
        let elems = self.graph.values.iter().map(|value| value.ty.checked_elems(dims).unwrap_or(usize::MAX) as u64);
        elems.fold(0, u64::max)
    }
}
