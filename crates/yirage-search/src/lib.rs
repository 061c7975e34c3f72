//! Superoptimisation: graphs that compute what a graph computes, at less cost as far as it can be told without a device.
//!
//! [`search`] is a pure function. A graph becomes terms that stand once each ([`yirage_compile::terms`]), [`RULES`] say what is
//! equal to a value, and graphs are looked at best first until nothing new is found or a budget of nodes is used up. The
//! rules are laws of real numbers; that a candidate really computes the same, and closely enough, is for a verifier to
//! show, which is [`equal`]'s: it says whether a graph may stand for another. Knows no device, no clock and no cache.
#![forbid(unsafe_code)]

mod choose;
mod cost;
pub mod equal;
mod explore;
mod import;
mod rule;
mod rules;

pub use cost::{DeviceRates, Estimate};
pub use explore::SearchEnd;
pub use rule::Rule;
pub use rules::{RULES, RULES_VERSION};
pub use yirage_compile::terms::tiles::Tilings;

use std::ops::ControlFlow;
use thiserror::Error;
use yirage_compile::terms::{GraphSignature, Terms, Val, export};
use yirage_compile::{CompileError, CompileOptions};
use yirage_ir::verify::VerifyError;
use yirage_ir::{BuildError, Dims, Graph};
use yirage_plan::Target;

/// How a graph is searched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchOptions {
    /// The sizes for which graphs are compared; those of graphs whose shapes are fixed say nothing.
    pub dims: Dims,
    /// How fast the device is.
    pub rates: DeviceRates,
    /// Nodes of all graphs that are looked at, together; the input is looked at in any case.
    pub budget: u64,
    /// Candidates that are wanted.
    pub keep: usize,
    /// How graphs are compiled.
    pub compile: CompileOptions,
    /// Which tilings are tried, where the target runs tiled regions.
    pub tilings: Tilings,
}

/// Nodes that are looked at where nobody says how many: some seconds.
pub const DEFAULT_BUDGET: u64 = 100_000;

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        let dims = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };
        SearchOptions {
            dims,
            rates: DeviceRates::UNMEASURED,
            budget: DEFAULT_BUDGET,
            keep: 8,
            compile: CompileOptions::default(),
            tilings: Tilings::default(),
        }
    }
}

/// How far a search is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SearchProgress {
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
pub struct SearchResult {
    /// What the input graph is expected to cost.
    pub input: Estimate,
    /// The best candidates, the cheapest first. The input is not among them.
    pub candidates: Vec<Candidate>,
    /// Graphs that were looked at.
    pub graphs: usize,
    /// Their nodes together.
    pub nodes: u64,
    /// Why the search ended.
    pub end: SearchEnd,
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
    #[error(
        "the KV cache `{name}`: graphs with KV caches are not rewritten, because the order of what is done to one is \
             part of their meaning; search the parts between them"
    )]
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
    watch: &mut dyn FnMut(&SearchProgress) -> ControlFlow<()>,
) -> Result<SearchResult, SearchError> {
    yirage_ir::verify(graph)?;
    let fused = cost::fused(graph, target, &options.compile)?;
    let input = cost::estimate(&fused, &options.dims, target, &options.rates);
    let like = GraphSignature::of(graph);
    let mut explored = explore::explore(graph, &like, target, options, RULES, watch)?;
    let mut notes = Vec::new();
    if let Some((count, why)) = &explored.refused {
        notes.push(format!("{count} rewritten graphs cannot be compiled; the first: {why}"));
    }
    let tiled = choose::tiled(&like, target, options, &mut explored, &mut notes)?;
    let candidates = choose::best(&like, target, options, &explored, &tiled, &fused, &mut notes)?;
    let (graphs, nodes, end) = (explored.visited.len(), explored.nodes, explored.end);
    Ok(SearchResult { input, candidates, graphs, nodes, end, notes })
}

/// Every graph that one use of `rule` makes of `graph`.
///
/// # Errors
/// As [`search`], but for compiling.
pub fn rewrites(graph: &Graph, rule: &Rule) -> Result<Vec<Graph>, SearchError> {
    yirage_ir::verify(graph)?;
    let mut terms = Terms::default();
    let outputs = import::import(graph, &mut terms)?;
    let order = terms.reachable(&outputs);
    let changes: Vec<Vec<(Val, Val)>> = match rule.apply {
        rule::Apply::Joint(apply) => apply(&mut terms, &order),
        rule::Apply::Local(apply) => {
            let values = order.iter().map(|&term| Val { term, out: 0 });
            let made =
                values.flat_map(|v| explore::alternatives(&mut terms, apply, v).into_iter().map(move |to| (v, to)));
            made.map(|change| vec![change]).collect()
        }
    };
    let mut made = Vec::new();
    for with in changes {
        if let Some(new) = terms.replaced(&outputs, &order, &with) {
            let order = terms.reachable(&new);
            made.push(export(&GraphSignature::of(graph), &terms, &new, &order)?);
        }
    }
    Ok(made)
}
