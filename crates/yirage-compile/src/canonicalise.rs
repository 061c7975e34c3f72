//! Removes what nothing reads and computes equal things once.

use crate::Options;
use crate::error::CompileError;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::{Graph, NodeKind, ValueId};
use yirage_plan::Target;

pub(crate) fn run(graph: &Graph, _: &Target, _: &Options) -> Result<Graph, CompileError> {
    let live = live_values(graph);
    let mut r = Rebuild::new(graph, |i| live[i.index()])?;
    let mut seen: HashMap<(NodeKind, Vec<ValueId>), Vec<ValueId>> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        if !node.outs.iter().any(|o| live[o.index()]) {
            continue;
        }
        let ins: Vec<ValueId> = node.ins.iter().map(|&i| r.get(i)).collect();
        let key = (node.kind.clone(), ins.clone());
        if let Some(outs) = seen.get(&key) {
            node.outs.iter().zip(outs.clone()).for_each(|(&old, new)| r.bind(old, new));
            continue;
        }
        r.copy(n, &ins)?;
        seen.insert(key, node.outs.iter().map(|&o| r.get(o)).collect());
    }
    Ok(r.finish())
}

/// Which values an output depends on.
fn live_values(graph: &Graph) -> Vec<bool> {
    let mut live = vec![false; graph.values.len()];
    graph.outputs.iter().for_each(|o| live[o.index()] = true);
    for node in graph.nodes.iter().rev() {
        if node.outs.iter().any(|o| live[o.index()]) {
            node.ins.iter().chain(&node.outs).for_each(|v| live[v.index()] = true);
        }
    }
    live
}
