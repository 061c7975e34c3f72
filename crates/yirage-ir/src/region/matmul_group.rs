//! Regions of products with several weights: they share their first input, so that it is prepared once. Maps and views may
//! follow a product: they are computed of its results where those are at hand. A map may join several products of one type,
//! as a gate and what it gates.

use super::chain::{Core, FusedChain, fits_after, producers};
use crate::graph::{Graph, Node, NodeKind};
use crate::op::Op;

/// Whether a node is a product with a weight.
pub fn is_weight_matmul(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Op(Op::Linear(_) | Op::ExpertLinear(_)))
}

/// Products by the same name of the same first input, each in one chain, which leaves the region: products are made by all
/// workers together, so that no worker could keep one. Those of one chain are one op with different weights.
pub(super) fn check(graph: &Graph) -> Result<(), String> {
    let products: Vec<&Node> = graph.nodes.iter().filter(|node| is_weight_matmul(node)).collect();
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
    let (mut used, mut multiplied) = (0, 0);
    for &output in &graph.outputs {
        let chain = FusedChain::to(graph, output)?;
        let Core::Matmuls(joined) = &chain.core else {
            return Err(format!("the output `{}` comes of no product", graph.value(output).name));
        };
        if let Some(other) = joined.iter().find(|product| product.op != joined[0].op) {
            return Err(format!("`{}` of other attributes than what it is joined with", other.op.name()));
        }
        fits_after(graph, &chain)?;
        multiplied += joined.len();
        used += producers(graph, output).len();
    }
    // A product in two chains would be two products.
    if multiplied != products.len() || used != graph.nodes.len() {
        let (count, nodes) = (products.len(), graph.nodes.len());
        return Err(format!(
            "outputs of {multiplied} products and {used} ops, of a region that has {count} and {nodes}: each in one output wanted"
        ));
    }
    Ok(())
}
