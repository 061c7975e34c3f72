//! Which values need a place, and how long each lives.

use crate::plan::Plan;
use yirage_ir::{NodeKind, Source, ValueId};

/// A value that needs a place, and the phases in which its bytes must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime {
    /// The node whose region owns the value, or none for a value of the graph itself.
    pub region: Option<u32>,
    /// The value in that graph.
    pub value: ValueId,
    /// The phase that makes it.
    pub from: u32,
    /// The last that reads it; the largest number for outputs.
    pub to: u32,
}

/// Every value that needs a place (cache states lie in the cache) with its life, where node n runs in phase `phase[n]`:
/// the graph's, then each region's own.
pub fn lifetimes(plan: &Plan, phase: &[u32]) -> Vec<Lifetime> {
    let graph = &plan.graph;
    let mut last = vec![0; graph.values.len()];
    for (n, node) in graph.nodes.iter().enumerate() {
        node.ins.iter().for_each(|i| last[i.index()] = phase[n].max(last[i.index()]));
    }
    graph.outputs.iter().for_each(|o| last[o.index()] = u32::MAX);
    let mut out = Vec::new();
    for (v, value) in graph.values.iter().enumerate() {
        let Source::Node { node, .. } = value.source else { continue };
        let (id, from) = (ValueId(v as u32), phase[node as usize]);
        if graph.state_of(id).is_none() {
            out.push(Lifetime { region: None, value: id, from, to: from.max(last[v]) });
        }
    }
    for (n, node) in graph.nodes.iter().enumerate() {
        let NodeKind::Region(region) = &node.kind else { continue };
        for (v, value) in region.graph.values.iter().enumerate() {
            let id = ValueId(v as u32);
            let inner = matches!(value.source, Source::Node { .. }) && !region.graph.outputs.contains(&id);
            if inner && region.graph.state_of(id).is_none() {
                out.push(Lifetime { region: Some(n as u32), value: id, from: phase[n], to: phase[n] });
            }
        }
    }
    out
}
