//! From the graphs that were looked at to candidates: tilings of the cheapest ones, and of all of them the best that a plan
//! can be made of.

use super::cost::{self, Estimate};
use super::explore::ExploredGraphs;
use super::{Candidate, SearchError, SearchOptions};
use std::collections::HashSet;
use yirage_compile::terms::tiles;
use yirage_compile::terms::{GraphSignature, export};
use yirage_compile::{compile, plan_weights};
use yirage_ir::{Graph, NodeKind, RegionKind};
use yirage_plan::Target;

/// A graph that may become a candidate.
pub(super) struct CandidateGraph {
    graph: Graph,
    estimate: Estimate,
    /// The graph that was looked at which it is, or is a tiling of.
    of: usize,
    tiled: bool,
}

/// Graphs of which tilings are tried: the cheapest ones.
const TILED_GRAPHS: usize = 24;
/// Tilings of one graph that are kept, which differ in the sizes of tiles alone.
const TILINGS_KEPT: usize = 3;

/// Tilings of the cheapest graphs.
pub(super) fn tiled(
    like: &GraphSignature,
    target: &Target,
    options: &SearchOptions,
    explored: &mut ExploredGraphs,
    notes: &mut Vec<String>,
) -> Result<Vec<CandidateGraph>, SearchError> {
    if !target.runs_regions(RegionKind::Tiled) || !options.compile.fuse {
        return Ok(Vec::new());
    }
    let (mut made, mut refused) = (Vec::new(), 0u64);
    for of in cheapest(explored).into_iter().take(TILED_GRAPHS) {
        let outputs = explored.visited[of].outputs.clone();
        let mut kept: Vec<CandidateGraph> = Vec::new();
        for outputs in tiles::proposals(&mut explored.terms, &outputs, target, &options.tilings, &mut refused) {
            let order = explored.terms.reachable(&outputs);
            explored.nodes += order.len() as u64;
            let graph = export(like, &explored.terms, &outputs, &order)?;
            let Ok(fused) = cost::fused(&graph, target, &options.compile) else {
                refused += 1;
                continue;
            };
            let estimate = cost::estimate(&fused, &options.dims, target, &options.rates);
            kept.push(CandidateGraph { graph, estimate, of, tiled: true });
        }
        kept.sort_by(|a, b| a.estimate.ns.total_cmp(&b.estimate.ns));
        made.extend(kept.into_iter().take(TILINGS_KEPT));
    }
    if refused > 0 {
        notes.push(format!("{refused} tilings were refused: a block has no room for its tiles, or they do not divide"));
    }
    Ok(made)
}

/// The graphs that were looked at, the cheapest first; of equal ones the one that was found first.
fn cheapest(explored: &ExploredGraphs) -> Vec<usize> {
    let mut order: Vec<usize> = (0..explored.visited.len()).collect();
    let ns = |at: usize| explored.visited[at].estimate.ns;
    order.sort_by(|&a, &b| ns(a).total_cmp(&ns(b)).then(a.cmp(&b)));
    order
}

/// The cheapest graphs that a plan can be made of, each other than the input after fusion.
pub(super) fn best(
    like: &GraphSignature,
    target: &Target,
    options: &SearchOptions,
    explored: &ExploredGraphs,
    tiled: &[CandidateGraph],
    input: &Graph,
    notes: &mut Vec<String>,
) -> Result<Vec<Candidate>, SearchError> {
    let mut made: Vec<CandidateGraph> = Vec::new();
    let mut known: HashSet<String> = HashSet::from([shape_of(input)]);
    for of in cheapest(explored).into_iter().take(SHOWN * options.keep) {
        let seen = &explored.visited[of];
        let nodes = explored.terms.reachable(&seen.outputs);
        let graph = export(like, &explored.terms, &seen.outputs, &nodes)?;
        // The first one is the input, as it is written again.
        if known.insert(shape_of(&cost::fused(&graph, target, &options.compile)?)) && of != 0 {
            made.push(CandidateGraph { graph, estimate: seen.estimate, of, tiled: false });
        }
    }
    let mut order: Vec<&CandidateGraph> = made.iter().chain(tiled).collect();
    order.sort_by(|a, b| a.estimate.ns.total_cmp(&b.estimate.ns).then(a.of.cmp(&b.of)));
    let mut candidates = Vec::new();
    for made in order {
        if candidates.len() == options.keep {
            break;
        }
        let weights = plan_weights(&made.graph, target)?;
        if let Err(why) = compile(&made.graph, options.dims, target, &weights, &options.compile) {
            notes.push(format!("a candidate of {:.0} ns has no plan: {why}", made.estimate.ns));
            continue;
        }
        let mut rules = explored.rules_of(made.of);
        rules.extend(made.tiled.then_some("tile"));
        candidates.push(Candidate { graph: made.graph.clone(), estimate: made.estimate, rules });
    }
    Ok(candidates)
}

/// Graphs a candidate that are compared after fusion: many of those that cost the same are the same.
const SHOWN: usize = 16;

/// A graph's text without the names of what lies between inputs and outputs, so that two ways to write one plan are one.
fn shape_of(graph: &Graph) -> String {
    let mut plain = graph.clone();
    for (at, value) in plain.values.iter_mut().enumerate() {
        value.name = format!("v{at}");
    }
    for node in &mut plain.nodes {
        if let NodeKind::Region(region) = &mut node.kind {
            let after = region.tiled.iter_mut().flat_map(|tiled| &mut tiled.block.values).enumerate();
            region.graph.values.iter_mut().enumerate().chain(after).for_each(|(at, v)| v.name = format!("v{at}"));
        }
    }
    yirage_ir::text::print(&plain)
}
