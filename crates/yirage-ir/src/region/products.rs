//! Regions of products with several weights: they share their first input, so that it is prepared once. Maps and views may
//! follow a product of its own rows: they are computed of its results where those are at hand.

use super::chain::{Chain, Core, fits_after, makers};
use crate::graph::{Graph, Node, NodeKind};
use crate::op::Op;

/// Whether a node is a product with a weight.
pub fn is_product(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Op(Op::Linear(_) | Op::ExpertLinear(_)))
}

/// Products by the same name of the same first input, each with a chain of its own, which leaves the region: products are
/// made by all workers together, so that no worker could keep one.
pub(super) fn check(graph: &Graph) -> Result<(), String> {
    let products: Vec<&Node> = graph.nodes.iter().filter(|node| is_product(node)).collect();
    let first = products.first().ok_or("no product")?;
    if graph.inputs.first() != first.ins.first() {
        return Err("the first input is not what the products share".into());
    }
    for node in &products {
        if node.name() != first.name() {
            return Err(format!("`{}` beside `{}`: products of one kind wanted", node.name(), first.name()));
        }
        if node.ins.first() != first.ins.first() {
            return Err(format!("the products `{}` do not share their first input", node.name()));
        }
    }
    let mut used = 0;
    for &output in &graph.outputs {
        let chain = Chain::to(graph, output)?;
        if !matches!(chain.core, Core::Product(..)) {
            return Err(format!("the output `{}` comes of no product", graph.value(output).name));
        }
        fits_after(graph, &chain)?;
        used += makers(graph, output).len();
    }
    // A product in two chains would be two products.
    if graph.outputs.len() != products.len() || used != graph.nodes.len() {
        let (outputs, count) = (graph.outputs.len(), products.len());
        return Err(format!("{count} products leave the region as {outputs} outputs, each with ops of its own wanted"));
    }
    Ok(())
}
