//! The ops of a tile's graph one by one: chains that passes have made are opened.

use crate::graph::{Graph, Node, NodeKind, Value, ValueId, ValueSource};
use std::borrow::Cow;

/// The graph without regions. Its inputs and outputs are the same, in the same order.
pub(super) fn flat(graph: &Graph) -> Cow<'_, Graph> {
    if graph.nodes.iter().all(|node| matches!(node.kind, NodeKind::Op(_))) {
        return Cow::Borrowed(graph);
    }
    let mut made = Graph { name: graph.name.clone(), ..Graph::default() };
    let map = inputs(graph, &mut made);
    let outputs = add(graph, map, "", &mut made);
    made.outputs = outputs;
    Cow::Owned(made)
}

fn inputs(graph: &Graph, made: &mut Graph) -> Vec<Option<ValueId>> {
    let mut map = vec![None; graph.values.len()];
    for &i in &graph.inputs {
        let id = ValueId(made.values.len() as u32);
        made.values.push(graph.value(i).clone());
        made.inputs.push(id);
        map[i.index()] = Some(id);
    }
    map
}

/// Adds the nodes of a graph whose inputs are in `map`; gives its outputs.
fn add(graph: &Graph, mut map: Vec<Option<ValueId>>, prefix: &str, made: &mut Graph) -> Vec<ValueId> {
    for (n, node) in graph.nodes.iter().enumerate() {
        let ins: Vec<ValueId> = node.ins.iter().filter_map(|i| map[i.index()]).collect();
        let outs = match &node.kind {
            NodeKind::Op(_) => op(graph, node, ins, prefix, made),
            NodeKind::Region(region) => {
                let mut inner = vec![None; region.graph.values.len()];
                region.graph.inputs.iter().zip(&ins).for_each(|(i, &id)| inner[i.index()] = Some(id));
                add(&region.graph, inner, &format!("{prefix}r{n}."), made)
            }
        };
        node.outs.iter().zip(outs).for_each(|(o, id)| map[o.index()] = Some(id));
    }
    graph.outputs.iter().filter_map(|o| map[o.index()]).collect()
}

fn op(graph: &Graph, node: &Node, ins: Vec<ValueId>, prefix: &str, made: &mut Graph) -> Vec<ValueId> {
    let at = made.nodes.len() as u32;
    let mut outs = Vec::with_capacity(node.outs.len());
    for (output, &o) in node.outs.iter().enumerate() {
        let value = graph.value(o);
        outs.push(ValueId(made.values.len() as u32));
        made.values.push(Value {
            name: format!("{prefix}{}", value.name),
            ty: value.ty.clone(),
            source: ValueSource::Node { node: at, output: output as u32 },
        });
    }
    made.nodes.push(Node { kind: node.kind.clone(), ins, outs: outs.clone() });
    outs
}
