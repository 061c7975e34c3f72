//! One graph for several devices: what a rank of them computes, with its part of the weights and of the KV caches.
//!
//! A weight is divided by its rows, so a rank computes whole outputs: no sum is divided, and every rank count gives the same
//! bytes. A value whose columns are divided so stays divided through what computes each head or element by itself, up to
//! attention with a cache whose heads are divided, or whose one head all query heads read; what needs all of a row gathers it
//! first. Of a grouped product a rank has whole groups, and of experts as the target says: rows of each, or whole ones. Then a
//! rank's results are 0 where the experts of others are chosen, so that their sum is exact. All else every rank computes.
//!
//! A graph that has collectives says by itself what its ranks give each other: it is a rank's already, and is left as it is.

mod division;
mod rank_graph;

use crate::CompileOptions;
use crate::decision::Decisions;
use crate::error::CompileError;
use crate::rebuild::Rebuild;
use division::RankShares;
use rank_graph::RankGraph;
use std::collections::HashMap;
use yirage_ir::op::Map;
use yirage_ir::{DType, Expr, Graph, NodeKind, ValueId};
use yirage_plan::Target;

pub(crate) fn run(
    graph: &Graph,
    target: &Target,
    _: &CompileOptions,
    decisions: &mut Decisions,
) -> Result<Graph, CompileError> {
    if target.ranks <= 1 {
        return alone(graph);
    }
    if is_of_a_rank(graph) {
        check_group(graph, target)?;
        return Ok(graph.clone());
    }
    let shares = RankShares::of(graph, target);
    shares.tell(decisions);
    RankGraph::of(graph, &shares)
}

/// For one device: a group of one gives what it is given.
fn alone(graph: &Graph) -> Result<Graph, CompileError> {
    let of_one = |kind: &NodeKind| matches!(kind, NodeKind::Op(op) if op.ranks() == Some(1));
    if !graph.nodes.iter().any(|node| of_one(&node.kind)) {
        return Ok(graph.clone());
    }
    let mut r = Rebuild::new(graph, |_| true)?;
    for (n, node) in graph.nodes.iter().enumerate() {
        let ins: Vec<ValueId> = node.ins.iter().map(|&id| r.get(id)).collect();
        let same = |dtype: DType| Map { expr: Expr::input(0).cast(dtype) };
        let kind = match node.outs.first() {
            Some(&out) if of_one(&node.kind) => NodeKind::Op(same(graph.ty(out).dtype).into()),
            _ => node.kind.clone(),
        };
        r.copy_as(n, kind, &ins)?;
    }
    Ok(r.finish())
}

/// The collectives of a graph: what they are called, and of how many ranks.
fn collectives(graph: &Graph) -> impl Iterator<Item = (&'static str, u32)> {
    graph.nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Op(op) => op.ranks().filter(|&ranks| ranks > 1).map(|ranks| (op.name(), ranks)),
        NodeKind::Region(_) => None,
    })
}

/// Whether whoever made the graph has divided it.
fn is_of_a_rank(graph: &Graph) -> bool {
    collectives(graph).next().is_some()
}

fn check_group(graph: &Graph, target: &Target) -> Result<(), CompileError> {
    match collectives(graph).find(|&(_, ranks)| ranks != target.ranks) {
        None => Ok(()),
        Some((name, ranks)) => Err(CompileError::Unsupported {
            what: format!("`{name}` of {ranks} ranks on a device that is one of {}", target.ranks),
            why: "all ranks of a device's group take part in a collective; make both of the same number".into(),
        }),
    }
}

/// The weights of a graph that are divided among the ranks of a target's group, and along which of their dimensions.
pub(crate) fn divided_weights(graph: &Graph, target: &Target) -> HashMap<ValueId, u32> {
    match target.ranks <= 1 || is_of_a_rank(graph) {
        true => HashMap::new(),
        false => RankShares::of(graph, target).into_weights(),
    }
}
