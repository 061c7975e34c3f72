//! Removes what nothing reads and computes equal things once.

use crate::CompileOptions;
use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::names;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::{Graph, NodeKind, ValueId};
use yirage_plan::Target;

pub(crate) fn run(
    graph: &Graph,
    _: &Target,
    _: &CompileOptions,
    decisions: &mut Decisions,
) -> Result<Graph, CompileError> {
    let live = live_values(graph);
    let mut r = Rebuild::new(graph, |i| live[i.index()])?;
    let mut seen: HashMap<(NodeKind, Vec<ValueId>), (usize, Vec<ValueId>)> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        if !node.outs.iter().any(|o| live[o.index()]) {
            let why = "nothing that the graph gives back depends on it";
            decisions.tell(|| Decision::done(names::of_node(graph, n), "removed", why));
            continue;
        }
        let ins: Vec<ValueId> = node.ins.iter().map(|&i| r.get(i)).collect();
        let key = (node.kind.clone(), ins.clone());
        if let Some((first, outs)) = seen.get(&key) {
            let why = || format!("{} is the same op of the same inputs", names::listed(&names::of_node(graph, *first)));
            decisions.tell(|| Decision::done(names::of_node(graph, n), "computed once", why()));
            node.outs.iter().zip(outs.clone()).for_each(|(&old, new)| r.bind(old, new));
            continue;
        }
        r.copy(n, &ins)?;
        seen.insert(key, (n, node.outs.iter().map(|&o| r.get(o)).collect()));
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
