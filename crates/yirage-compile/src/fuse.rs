//! Groups nodes into regions and phases.
//!
//! Phases alternate: all row-wise ops that are ready, with everything row-wise that follows from them, become one
//! region (one pass over the tokens, no waiting between the ops); then all other nodes that are ready run side by
//! side, products of the same input as one region, whatever the formats of their weights. Maps and views of a product's
//! result join it where all else that they read is there already.

use crate::Options;
use crate::epilogue::Epilogues;
use crate::error::CompileError;
use crate::group;
use crate::readers::{Readers, is_there};
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::region::{MAX_REGION_OPS, is_product, row_dim};
use yirage_ir::{Dim, Graph, Node, NodeKind, RegionKind, Source, Type, ValueId};
use yirage_plan::{Step, Target};

pub(crate) fn run(graph: &Graph, target: &Target, options: &Options) -> Result<Graph, CompileError> {
    if !options.fuse {
        return Ok(graph.clone());
    }
    let mut r = Rebuild::new(graph, |_| true)?;
    let readers = Readers::of(graph);
    for group in groups(graph, &Epilogues::new(graph, &readers, target)) {
        if target.runs_regions(kind_of(graph, &group)) {
            emit(graph, &group, &readers, &mut r)?;
        } else {
            group.iter().try_for_each(|&n| emit(graph, &[n], &readers, &mut r))?;
        }
    }
    Ok(r.finish())
}

/// The steps of a fused graph: a node's phase is one past the latest of its producers', and phases follow the order
/// of the graph, so that a row-wise region and the nodes beside it share a phase only if independent.
pub(crate) fn steps(graph: &Graph, kernels: &[u32]) -> Vec<Step> {
    let mut phases: Vec<u32> = Vec::with_capacity(graph.nodes.len());
    let mut floor = 0;
    for node in &graph.nodes {
        let after = node.ins.iter().filter_map(|&i| match graph.value(i).source {
            Source::Node { node, .. } => Some(phases[node as usize] + 1),
            _ => None,
        });
        floor = after.fold(floor, u32::max);
        phases.push(floor);
    }
    let steps = phases.iter().zip(kernels).enumerate();
    steps.map(|(n, (&phase, &kernel))| Step { node: n as u32, kernel, phase }).collect()
}

/// Node indices that run together, in an order in which they can run.
fn groups(graph: &Graph, epilogues: &Epilogues<'_>) -> Vec<Vec<usize>> {
    let mut done = vec![false; graph.nodes.len()];
    let mut left = graph.nodes.len();
    let mut out = Vec::new();
    while left > 0 {
        let mut batch = ready_rows(graph, &done);
        if batch.is_empty() {
            batch = ready_products(graph, &done);
            batch.iter_mut().for_each(|group| epilogues.join(group, &done));
        }
        for group in &batch {
            group.iter().for_each(|&n| done[n] = true);
            left -= group.len();
        }
        out.extend(batch);
    }
    out
}

fn is_ready(graph: &Graph, n: usize, done: &[bool]) -> bool {
    graph.nodes[n].ins.iter().all(|&i| is_there(graph, i, done))
}

/// Whether a row of what the node makes may depend on all of input `at`.
fn reads_whole(node: &Node, at: usize, ty: &Type) -> bool {
    matches!(&node.kind, NodeKind::Op(op) if op.whole(at, ty))
}

/// Ready row-wise nodes and all that follow from them row by row, one group a token dimension.
fn ready_rows(graph: &Graph, done: &[bool]) -> Vec<Vec<usize>> {
    let mut done = done.to_vec();
    let mut groups: Vec<(Option<Dim>, Vec<usize>)> = Vec::new();
    let mut dim_of: HashMap<usize, Option<Dim>> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        if done[n] || !is_ready(graph, n, &done) {
            continue;
        }
        let dim = row_dim(graph, node);
        if dim.is_none() {
            continue;
        }
        // A producer fused in this round must run over the same rows, and what it makes be read row by row.
        let crosses = node.ins.iter().enumerate().any(|(at, &i)| match graph.value(i).source {
            Source::Node { node: maker, .. } => dim_of
                .get(&(maker as usize))
                .is_some_and(|d| *d != dim || (reads_whole(node, at, graph.ty(i)) && graph.state_of(i).is_none())),
            _ => false,
        });
        if crosses {
            continue;
        }
        match groups.iter_mut().find(|(d, _)| *d == dim) {
            Some((_, members)) if members.len() == MAX_REGION_OPS => continue,
            Some((_, members)) => members.push(n),
            None => groups.push((dim, vec![n])),
        }
        done[n] = true;
        dim_of.insert(n, dim);
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// Ready nodes that are not row-wise, products of one input together.
fn ready_products(graph: &Graph, done: &[bool]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        if done[n] || !is_ready(graph, n, done) || row_dim(graph, node).is_some() {
            continue;
        }
        let shared = |g: &&mut Vec<usize>| {
            let other = &graph.nodes[g[0]];
            is_product(node) && other.name() == node.name() && other.ins[0] == node.ins[0] && g.len() < MAX_REGION_OPS
        };
        match groups.iter_mut().find(shared) {
            Some(group) => group.push(n),
            None => groups.push(vec![n]),
        }
    }
    groups
}

/// The kind of region that nodes which run together are.
fn kind_of(graph: &Graph, members: &[usize]) -> RegionKind {
    if is_product(&graph.nodes[members[0]]) { RegionKind::Products } else { RegionKind::Rows }
}

fn emit(graph: &Graph, members: &[usize], readers: &Readers, r: &mut Rebuild) -> Result<(), CompileError> {
    if let [n] = members {
        let ins: Vec<ValueId> = graph.nodes[*n].ins.iter().map(|&i| r.get(i)).collect();
        return Ok(r.copy(*n, &ins)?);
    }
    let kind = kind_of(graph, members);
    let made = members.iter().flat_map(|&n| &graph.nodes[n].outs);
    let outside = |id: &&ValueId| readers.is_output(**id) || readers.all(**id).iter().any(|n| !members.contains(n));
    let outs: Vec<ValueId> = made.filter(outside).copied().collect();
    group::emit(graph, members, &outs, kind, r)
}
