//! Who reads a weight, and how.

use yirage_ir::{Graph, Node, NodeKind, Op, ValueId};

/// The ops that read a value of the graph, in regions too, each with the input that it reads it as.
pub fn readers(graph: &Graph, id: ValueId) -> Vec<(&Op, usize)> {
    graph.nodes.iter().flat_map(|node| node_readers(node, id)).collect()
}

/// Those of one node.
pub(crate) fn node_readers(node: &Node, id: ValueId) -> Vec<(&Op, usize)> {
    let mut found = Vec::new();
    for (at, _) in node.ins.iter().enumerate().filter(|(_, i)| **i == id) {
        match &node.kind {
            NodeKind::Op(op) => found.push((op, at)),
            NodeKind::Region(region) => {
                for part in region.parts() {
                    let is = |(_, outer): &(&ValueId, &Option<usize>)| **outer == Some(at);
                    let inner = part.graph.inputs.iter().zip(&part.ins).filter(is);
                    inner.for_each(|(&input, _)| found.extend(readers(part.graph, input)));
                }
            }
        }
    }
    found
}

/// As how many matrices, one below the other, each reader of a weight reads it.
pub fn matrices(graph: &Graph, id: ValueId) -> Vec<u32> {
    let count = |(op, at): (&Op, usize)| match op {
        Op::Linear(linear) if at == 1 => linear.groups,
        _ => 1,
    };
    readers(graph, id).into_iter().map(count).collect()
}
