//! Who reads each value of a graph, and whether it is there.

use crate::names;
use yirage_ir::{Graph, ValueId, ValueSource};

/// The nodes that read each value, each once, ascending; and what the graph gives back.
pub(crate) struct ValueUses {
    nodes: Vec<Vec<usize>>,
    output: Vec<bool>,
}

impl ValueUses {
    pub(crate) fn of(graph: &Graph) -> ValueUses {
        let mut nodes = vec![Vec::new(); graph.values.len()];
        for (n, node) in graph.nodes.iter().enumerate() {
            for i in &node.ins {
                let readers: &mut Vec<usize> = &mut nodes[i.index()];
                if readers.last() != Some(&n) {
                    readers.push(n);
                }
            }
        }
        let mut output = vec![false; graph.values.len()];
        graph.outputs.iter().for_each(|o| output[o.index()] = true);
        ValueUses { nodes, output }
    }

    /// The nodes that read a value.
    pub(crate) fn all(&self, id: ValueId) -> &[usize] {
        &self.nodes[id.index()]
    }

    /// Whether the graph gives a value back.
    pub(crate) fn is_output(&self, id: ValueId) -> bool {
        self.output[id.index()]
    }

    /// The node that reads a value, if nothing else does.
    pub(crate) fn only(&self, id: ValueId) -> Option<usize> {
        match self.all(id) {
            [reader] if !self.is_output(id) => Some(*reader),
            _ => None,
        }
    }

    /// Of a value that is wanted elsewhere than by the nodes `inside`: where.
    pub(crate) fn wanted(&self, graph: &Graph, id: ValueId, inside: &[usize]) -> String {
        let value = names::quoted(graph, id);
        if self.is_output(id) {
            return format!("{value} is an output of the graph");
        }
        let others: Vec<usize> = self.all(id).iter().copied().filter(|n| !inside.contains(n)).collect();
        format!("{value} is shared: read for {} too", names::listed(&names::of_nodes(graph, &others)))
    }
}

/// Whether a value is made, or given.
pub(crate) fn is_there(graph: &Graph, value: ValueId, done: &[bool]) -> bool {
    match graph.value(value).source {
        ValueSource::Node { node, .. } => done[node as usize],
        _ => true,
    }
}
