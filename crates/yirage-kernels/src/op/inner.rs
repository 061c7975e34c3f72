//! Nodes of a graph inside of a node: a region's, or those of a general form. What they leave for each other lies in the
//! node's workspace.

use super::{NodePart, NodeView, parts};
use crate::node_kernel::Operand;
use crate::workspace::Workspace;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use yirage_hal::HalError;
use yirage_ir::{Graph, Node, ValueId};

/// The parts of a region's graph.
pub(crate) fn parts_of_graph(
    view: &NodeView<'_>,
    graph: &Graph,
    workspace: &mut Workspace,
) -> Result<Vec<NodePart>, HalError> {
    parts_of_nodes(view, graph, &graph.nodes, workspace)
}

/// The parts of nodes over the values of a graph, whose inputs and outputs are those of the node that is viewed.
pub(crate) fn parts_of_nodes(
    view: &NodeView<'_>,
    graph: &Graph,
    nodes: &[Node],
    workspace: &mut Workspace,
) -> Result<Vec<NodePart>, HalError> {
    let mut places: HashMap<ValueId, Operand> = HashMap::new();
    places.extend(graph.inputs.iter().copied().zip(view.ins.iter().copied()));
    places.extend(graph.outputs.iter().copied().zip(view.outs.iter().copied()));
    let mut all = Vec::new();
    for node in nodes {
        for &id in &node.outs {
            // A cache that was appended to lies where it did.
            if let Some(cache) = graph.kv_cache_of(id)
                && let Some(&place) = places.get(&cache)
            {
                places.insert(id, place);
            }
            if let Entry::Vacant(nowhere) = places.entry(id) {
                nowhere.insert(workspace.take(graph.ty(id), &view.site.bucket)?);
            }
        }
        let place = |id: &ValueId| {
            let nowhere = || HalError::Load(format!("`{}` lies nowhere", graph.value(*id).name));
            places.get(id).copied().ok_or_else(nowhere)
        };
        let ins = node.ins.iter().map(place).collect::<Result<_, _>>()?;
        let outs = node.outs.iter().map(place).collect::<Result<_, _>>()?;
        let view = NodeView { site: view.site, graph, node, ins, outs, workspace: *workspace };
        all.extend(parts(&view, workspace)?);
    }
    Ok(all)
}
