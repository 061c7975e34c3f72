//! How decisions call values and ops.

use yirage_ir::{Graph, NodeKind, ValueId};

/// The values that node `n` makes.
pub(crate) fn of_node(graph: &Graph, n: usize) -> Vec<String> {
    of(graph, &graph.nodes[n].outs)
}

/// The values that nodes make.
pub(crate) fn of_nodes(graph: &Graph, nodes: &[usize]) -> Vec<String> {
    nodes.iter().flat_map(|&n| of_node(graph, n)).collect()
}

/// Some values.
pub(crate) fn of(graph: &Graph, values: &[ValueId]) -> Vec<String> {
    values.iter().map(|&v| graph.value(v).name.clone()).collect()
}

/// One value.
pub(crate) fn one(graph: &Graph, value: ValueId) -> Vec<String> {
    of(graph, &[value])
}

/// Names in a sentence.
pub(crate) fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A value in a sentence.
pub(crate) fn quoted(graph: &Graph, value: ValueId) -> String {
    format!("`{}`", graph.value(value).name)
}

/// A node in a sentence: an op with its attributes, or the kind of a region.
pub(crate) fn node(kind: &NodeKind) -> String {
    let NodeKind::Op(op) = kind else { return "a region".into() };
    let attrs: Vec<String> = op.attrs().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    if attrs.is_empty() { format!("`{}`", op.name()) } else { format!("`{}{{{}}}`", op.name(), attrs.join(", ")) }
}
