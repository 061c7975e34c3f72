//! Superoptimisation: graphs that compute what a graph computes, at less cost as far as it can be told without a device.
//!
//! [`search`] is a pure function. A graph becomes terms ([`terms`](self)) that stand once each, [`RULES`] say what is
//! equal to a value, and graphs are looked at best first until nothing new is found or a budget of nodes is used up. The
//! rules are laws of real numbers; that a candidate really computes the same, and closely enough, is for a verifier to
//! show. Knows no device, no clock and no cache.

mod convert;
mod cost;
mod explore;
mod rule;
mod rules;
mod terms;
mod tiles;

pub use cost::{Estimate, Rates};
pub use explore::End;
pub use rule::Rule;
pub use rules::{RULES, RULES_VERSION};
pub use tiles::Tilings;

use crate::error::CompileError;
use crate::{Options, compile, plan_weights};
use convert::Interface;
use std::collections::HashSet;
use std::ops::ControlFlow;
use terms::{Terms, Val};
use thiserror::Error;
use yirage_ir::verify::VerifyError;
use yirage_ir::{BuildError, Dims, Graph, NodeKind, RegionKind};
use yirage_plan::Target;

/// How a graph is searched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchOptions {
    /// The sizes for which graphs are compared; those of graphs whose shapes are fixed say nothing.
    pub dims: Dims,
    /// How fast the device is.
    pub rates: Rates,
    /// Nodes of all graphs that are looked at, together; the input is looked at in any case.
    pub budget: u64,
    /// Candidates that are wanted.
    pub keep: usize,
    /// How graphs are compiled.
    pub compile: Options,
    /// Which tilings are tried, where the target runs tiled regions.
    pub tilings: Tilings,
}

/// Nodes that are looked at where nobody says how many: some seconds.
pub const DEFAULT_BUDGET: u64 = 100_000;

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        let dims = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };
        SearchOptions { dims, rates: Rates::UNMEASURED, budget: DEFAULT_BUDGET, keep: 8, compile: Options::default(), tilings: Tilings::default() }
    }
}

/// How far a search is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Graphs that were looked at.
    pub graphs: usize,
    /// Their nodes together.
    pub nodes: u64,
    /// Graphs whose neighbours were not looked at yet.
    pub waiting: usize,
    /// What the best one is expected to take.
    pub best_ns: f64,
}

/// A graph that computes what the input does, if its rules are laws.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The graph: inputs and names of outputs are those of the input graph.
    pub graph: Graph,
    /// What it is expected to cost.
    pub estimate: Estimate,
    /// The rules that made it, in the order in which they were used.
    pub rules: Vec<&'static str>,
}

/// What a search has found.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// What the input graph is expected to cost.
    pub input: Estimate,
    /// The best candidates, the cheapest first. The input is not among them.
    pub candidates: Vec<Candidate>,
    /// Graphs that were looked at.
    pub graphs: usize,
    /// Their nodes together.
    pub nodes: u64,
    /// Why the search ended.
    pub end: End,
    /// What was refused on the way, and why.
    pub notes: Vec<String>,
}

/// Why a graph cannot be searched.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum SearchError {
    /// The graph does not hold together.
    #[error(transparent)]
    Graph(#[from] VerifyError),
    /// It has memory that outlives a step.
    #[error("the state `{name}`: graphs with states are not rewritten, because the order of what is done to a state is \
             part of their meaning; search the parts between the states")]
    State {
        /// The state.
        name: String,
    },
    /// A node does not take what the graph gives it.
    #[error("the graph `{graph}` holds a node that does not take its inputs")]
    Untyped {
        /// The graph.
        graph: String,
    },
    /// The input cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A rewritten graph does not hold together: a bug of the search, with its facts.
    #[error("rewritten graph: {0}")]
    Rewritten(#[from] BuildError),
}

/// Graphs that compute what `graph` does, the cheapest on `target` first. `watch` hears of the progress before each graph's
/// neighbours are looked at, and may end the search.
///
/// The same arguments give the same result to the byte, unless `watch` ends it.
///
/// # Errors
/// [`SearchError`]: a graph that does not hold together, has states, or cannot be compiled for `target`.
pub fn search(
    graph: &Graph,
    target: &Target,
    options: &SearchOptions,
    watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Found, SearchError> {
    yirage_ir::verify(graph)?;
    let fused = cost::fused(graph, target, &options.compile)?;
    let input = cost::estimate(&fused, &options.dims, target, &options.rates);
    let like = Interface::of(graph);
    let mut explored = explore::explore(graph, &like, target, options, RULES, watch)?;
    let mut notes = Vec::new();
    if let Some((count, why)) = &explored.refused {
        notes.push(format!("{count} rewritten graphs cannot be compiled; the first: {why}"));
    }
    let tiled = tiled(&like, target, options, &mut explored, &mut notes)?;
    let candidates = best(&like, target, options, &explored, &tiled, &fused, &mut notes)?;
    let (graphs, nodes, end) = (explored.seen.len(), explored.nodes, explored.end);
    Ok(Found { input, candidates, graphs, nodes, end, notes })
}

/// A graph that may become a candidate.
struct Made {
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
fn tiled(
    like: &Interface,
    target: &Target,
    options: &SearchOptions,
    explored: &mut explore::Explored,
    notes: &mut Vec<String>,
) -> Result<Vec<Made>, SearchError> {
    if !target.runs_regions(RegionKind::Tiled) || !options.compile.fuse {
        return Ok(Vec::new());
    }
    let (mut made, mut refused) = (Vec::new(), 0u64);
    for of in cheapest(explored).into_iter().take(TILED_GRAPHS) {
        let outputs = explored.seen[of].outputs.clone();
        let mut kept: Vec<Made> = Vec::new();
        for outputs in tiles::proposals(&mut explored.terms, &outputs, target, &options.tilings, &mut refused) {
            let order = explored.terms.reachable(&outputs);
            explored.nodes += order.len() as u64;
            let graph = convert::export(like, &explored.terms, &outputs, &order)?;
            let Ok(fused) = cost::fused(&graph, target, &options.compile) else {
                refused += 1;
                continue;
            };
            let estimate = cost::estimate(&fused, &options.dims, target, &options.rates);
            kept.push(Made { graph, estimate, of, tiled: true });
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
fn cheapest(explored: &explore::Explored) -> Vec<usize> {
    let mut order: Vec<usize> = (0..explored.seen.len()).collect();
    let ns = |at: usize| explored.seen[at].estimate.ns;
    order.sort_by(|&a, &b| ns(a).total_cmp(&ns(b)).then(a.cmp(&b)));
    order
}

/// The cheapest graphs that a plan can be made of, each other than the input after fusion.
fn best(
    like: &Interface,
    target: &Target,
    options: &SearchOptions,
    explored: &explore::Explored,
    tiled: &[Made],
    input: &Graph,
    notes: &mut Vec<String>,
) -> Result<Vec<Candidate>, SearchError> {
    let mut made: Vec<Made> = Vec::new();
    let mut known: HashSet<String> = HashSet::from([shape_of(input)]);
    for of in cheapest(explored).into_iter().take(SHOWN * options.keep) {
        let seen = &explored.seen[of];
        let nodes = explored.terms.reachable(&seen.outputs);
        let graph = convert::export(like, &explored.terms, &seen.outputs, &nodes)?;
        // The first one is the input, as it is written again.
        if known.insert(shape_of(&cost::fused(&graph, target, &options.compile)?)) && of != 0 {
            made.push(Made { graph, estimate: seen.estimate, of, tiled: false });
        }
    }
    let mut order: Vec<&Made> = made.iter().chain(tiled).collect();
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

/// Every graph that one use of `rule` makes of `graph`.
///
/// # Errors
/// As [`search`], but for compiling.
pub fn rewrites(graph: &Graph, rule: &Rule) -> Result<Vec<Graph>, SearchError> {
    yirage_ir::verify(graph)?;
    let mut terms = Terms::default();
    let outputs = convert::import(graph, &mut terms)?;
    let order = terms.reachable(&outputs);
    let changes: Vec<Vec<(Val, Val)>> = match rule.apply {
        rule::Apply::Joint(apply) => apply(&mut terms, &order),
        rule::Apply::Local(apply) => {
            let values = order.iter().map(|&term| Val { term, out: 0 });
            let made = values.flat_map(|v| explore::alternatives(&mut terms, apply, v).into_iter().map(move |to| (v, to)));
            made.map(|change| vec![change]).collect()
        }
    };
    let mut made = Vec::new();
    for with in changes {
        if let Some(new) = terms.replaced(&outputs, &order, &with) {
            let order = terms.reachable(&new);
            made.push(convert::export(&Interface::of(graph), &terms, &new, &order)?);
        }
    }
    Ok(made)
}
