//! A graph with its weights, checked and named once.

use crate::key::interface_hash;
use std::sync::Arc;
use yirage_call::{Array, CallError, Interface};
use yirage_compile::CompileError;
use yirage_ir::{Dims, Graph};

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
    /// Where the weights lie.
    pub(crate) addresses: Arc<[usize]>,
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
        let mut addresses: Vec<(&str, usize)> =
            weights.iter().map(|(name, array)| (name.as_str(), array.bytes().as_ptr() as usize)).collect();
        addresses.sort_unstable();
        Ok(BoundGraph {
            hash: graph.structural_hash(),
            interface_hash: interface_hash(&interface),
            addresses: addresses.into_iter().map(|(_, address)| address).collect(),
            graph: Arc::new(graph),
            interface: Arc::new(interface),
            weights: weights.into(),
        })
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
