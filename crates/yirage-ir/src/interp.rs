//! Evaluates a graph by its ops' reference evaluations: the meaning of the graph.

use crate::graph::{Graph, Node, NodeKind, ValueId, ValueSource};
use crate::op::Op;
use crate::region::evaluate_tiled;
use crate::tensor::Tensor;
use std::collections::HashMap;
use thiserror::Error;

/// An input that was not given.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("no tensor is given for the input `{0}`")]
pub struct MissingInput(pub String);

/// What evaluates an op on its inputs: [`Op::eval`], or an instrument's own.
pub type Eval = fn(&Op, &[&Tensor]) -> Vec<Tensor>;

/// Evaluates `graph` on tensors by input name. Cache states are updated in `tensors`; the outputs come back in
/// order.
///
/// # Errors
/// When an input is not in `tensors`.
pub fn evaluate(graph: &Graph, tensors: &mut HashMap<String, Tensor>) -> Result<Vec<Tensor>, MissingInput> {
    evaluate_with(Op::eval, graph, tensors)
}

/// [`evaluate`] with another evaluation of the ops.
///
/// # Errors
/// When an input is not in `tensors`.
pub fn evaluate_with(
    eval: Eval,
    graph: &Graph,
    tensors: &mut HashMap<String, Tensor>,
) -> Result<Vec<Tensor>, MissingInput> {
    let mut values: Vec<Option<Tensor>> = vec![None; graph.values.len()];
    for &i in &graph.inputs {
        let v = graph.value(i);
        // Weights stay where they are (they are large); step inputs and states move in.
        if v.source != ValueSource::Weight {
            values[i.index()] = Some(tensors.remove(&v.name).ok_or_else(|| MissingInput(v.name.clone()))?);
        }
    }
    for node in &graph.nodes {
        let outs = run_node(eval, graph, node, &values, tensors)?;
        for (&id, t) in node.outs.iter().zip(outs) {
            values[id.index()] = Some(t);
        }
    }
    let outputs = graph.outputs.iter().map(|&o| values[o.index()].clone().ok_or_else(|| missing(graph, o)));
    let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    for (id, name) in final_kv_caches(graph) {
        if let Some(t) = values[id.index()].take() {
            tensors.insert(name, t);
        }
    }
    Ok(outputs)
}

fn missing(graph: &Graph, id: ValueId) -> MissingInput {
    MissingInput(graph.value(id).name.clone())
}

fn run_node(
    eval: Eval,
    graph: &Graph,
    node: &Node,
    values: &[Option<Tensor>],
    weights: &HashMap<String, Tensor>,
) -> Result<Vec<Tensor>, MissingInput> {
    let find = |id: &ValueId| {
        let made = values[id.index()].as_ref();
        made.or_else(|| weights.get(&graph.value(*id).name)).ok_or_else(|| missing(graph, *id))
    };
    let tensors = node.ins.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    evaluate_node(eval, node, &tensors)
}

/// Evaluates one node on its inputs, in order; its outputs come back in order.
///
/// # Errors
/// A region that has more inputs.
pub fn evaluate_node(eval: Eval, node: &Node, inputs: &[&Tensor]) -> Result<Vec<Tensor>, MissingInput> {
    match &node.kind {
        NodeKind::Op(op) => Ok(eval(op, inputs)),
        NodeKind::Region(region) => {
            let run = |graph: &Graph, given: Vec<Tensor>| {
                let names = graph.inputs.iter().map(|&i| graph.value(i).name.clone());
                evaluate_with(eval, graph, &mut names.zip(given).collect())
            };
            match &region.tiled {
                Some(tiled) => evaluate_tiled(&region.graph, tiled, inputs, eval, run),
                None => run(&region.graph, inputs.iter().copied().cloned().collect()),
            }
        }
    }
}

/// The last value of each state: what appends made of it, if anything did.
fn final_kv_caches(graph: &Graph) -> Vec<(ValueId, String)> {
    let last = |state: ValueId| {
        let named = |&id: &ValueId| graph.kv_cache_of(id) == Some(state);
        (0..graph.values.len() as u32).map(ValueId).rfind(named).unwrap_or(state)
    };
    graph.inputs_of(ValueSource::KvCache).map(|state| (last(state), graph.value(state).name.clone())).collect()
}
