//! Which values need a place, and how long each lives.

use crate::plan::Plan;
use yirage_ir::{ValueId, ValueSource};

/// A value that needs a place, and the phases in which its bytes must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime {
    /// The value.
    pub value: ValueId,
    /// The phase that makes it.
    pub from: u32,
    /// The last that reads it; the largest number for outputs.
    pub to: u32,
}

/// Every value that needs a place (cache states lie in the cache, what is inside of regions with workers) with its life,
/// where node n runs in phase `phase[n]`.
pub fn lifetimes(plan: &Plan, phase: &[u32]) -> Vec<Lifetime> {
    let graph = &plan.graph;
    let mut last = vec![0; graph.values.len()];
    for (n, node) in graph.nodes.iter().enumerate() {
        node.ins.iter().for_each(|i| last[i.index()] = phase[n].max(last[i.index()]));
    }
    graph.outputs.iter().for_each(|o| last[o.index()] = u32::MAX);
    let mut out = Vec::new();
    for (v, value) in graph.values.iter().enumerate() {
        let ValueSource::Node { node, .. } = value.source else { continue };
        let (id, from) = (ValueId(v as u32), phase[node as usize]);
        if graph.kv_cache_of(id).is_none() {
            out.push(Lifetime { value: id, from, to: from.max(last[v]) });
        }
    }
    out
}
