//! Regions of products with several weights: they share their first input, so that it is prepared once.

use crate::graph::{Graph, Node, NodeKind, Source};
use crate::op::Op;

/// Whether a node is a product with a weight.
pub fn is_product(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Op(Op::Linear(_) | Op::ExpertLinear(_)))
}

/// All ops are products by the same name, of the same first input, none reads what another makes, and all that they make
/// leaves the region: products are made by all workers together, so that no worker could keep one.
pub(super) fn check(graph: &Graph) -> Result<(), String> {
    let first = graph.nodes.first().ok_or("no product")?;
    if graph.inputs.first() != first.ins.first() {
        return Err("the first input is not what the products share".into());
    }
    for node in &graph.nodes {
        if !is_product(node) || node.name() != first.name() {
            return Err(format!("`{}` beside `{}`: products of one kind wanted", node.name(), first.name()));
        }
        if node.ins.first() != first.ins.first() {
            return Err(format!("the products `{}` do not share their first input", node.name()));
        }
        if let Some(&o) = node.outs.iter().find(|o| !graph.outputs.contains(o)) {
            return Err(format!("the product `{}` does not leave the region", graph.value(o).name));
        }
        if let Some(&i) = node.ins.iter().find(|&&i| matches!(graph.value(i).source, Source::Node { .. })) {
            return Err(format!("`{}` is made by one product and read by another", graph.value(i).name));
        }
    }
    Ok(())
}
