//! A graph becomes terms. Named ops are found first, so that they keep their kernels unless a rule takes them apart.

use crate::SearchError;
use yirage_compile::terms::{Terms, Val, inline};
use yirage_compile::{Decisions, recognised};
use yirage_ir::{Graph, ValueSource};

/// The terms of a graph's outputs.
pub(crate) fn import(graph: &Graph, terms: &mut Terms) -> Result<Vec<Val>, SearchError> {
    if let Some(state) = graph.inputs_of(ValueSource::KvCache).next() {
        return Err(SearchError::State { name: graph.value(state).name.clone() });
    }
    let graph = &recognised(graph, &mut Decisions::unheard())?;
    let inputs: Vec<Val> =
        graph.inputs.iter().enumerate().map(|(at, &id)| terms.input(at as u32, graph.ty(id).clone())).collect();
    inline(graph, &inputs, terms).ok_or_else(|| SearchError::Untyped { graph: graph.name.clone() })
}
