//! The search: best first, by the estimate, until nothing new is found or the budget is used up.

use super::cost::{Estimate, estimate, fused};
use super::rule::{Apply, Rule};
use super::{SearchError, SearchOptions, SearchProgress};
use crate::import::import;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::ControlFlow;
use yirage_compile::CompileError;
use yirage_compile::terms::{GraphSignature, TermKind, Terms, Val, export};
use yirage_ir::Graph;
use yirage_plan::Target;

/// A graph that was looked at.
pub(super) struct VisitedGraph {
    pub(super) outputs: Vec<Val>,
    pub(super) estimate: Estimate,
    /// The graph it was made of, and by which rule; none for the input.
    from: Option<(usize, &'static str)>,
}

/// Everything that was looked at.
pub(super) struct ExploredGraphs {
    pub(super) terms: Terms,
    pub(super) visited: Vec<VisitedGraph>,
    pub(super) nodes: u64,
    pub(super) end: SearchEnd,
    /// Graphs that the compiler does not take, and what it said of the first.
    pub(super) refused: Option<(u64, CompileError)>,
    best_ns: f64,
}

/// Why the search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchEnd {
    /// No rule makes anything new.
    Exhausted,
    /// The budget is used up.
    Budget,
    /// Whoever watches wanted it to end.
    Stopped,
}

/// A graph that waits for its turn: the cheapest first, of equal ones the one that was found first.
#[derive(PartialEq)]
struct FrontierEntry(f64, usize);

impl Eq for FrontierEntry {}
impl PartialOrd for FrontierEntry {
    fn partial_cmp(&self, other: &FrontierEntry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for FrontierEntry {
    fn cmp(&self, other: &FrontierEntry) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

struct Explorer<'a> {
    like: &'a GraphSignature,
    target: &'a Target,
    options: &'a SearchOptions,
    rules: &'a [Rule],
    explored: ExploredGraphs,
    known: HashSet<Vec<Val>>,
    waiting: BinaryHeap<Reverse<FrontierEntry>>,
    /// What local rules make of a value, which is the same in every graph.
    equal: HashMap<Val, Vec<(&'static str, Val)>>,
}

pub(super) fn explore(
    graph: &Graph,
    like: &GraphSignature,
    target: &Target,
    options: &SearchOptions,
    rules: &[Rule],
    watch: &mut dyn FnMut(&SearchProgress) -> ControlFlow<()>,
) -> Result<ExploredGraphs, SearchError> {
    let mut terms = Terms::default();
    let outputs = import(graph, &mut terms)?;
    let (end, best_ns) = (SearchEnd::Exhausted, f64::INFINITY);
    let found = ExploredGraphs { terms, visited: Vec::new(), nodes: 0, end, refused: None, best_ns };
    let (known, equal) = (HashSet::new(), HashMap::new());
    let mut explorer =
        Explorer { like, target, options, rules, explored: found, known, waiting: BinaryHeap::new(), equal };
    explorer.add(outputs, None)?;
    while let Some(Reverse(FrontierEntry(_, at))) = explorer.waiting.pop() {
        if explorer.explored.nodes >= options.budget {
            explorer.explored.end = SearchEnd::Budget;
            break;
        }
        if watch(&explorer.progress()).is_break() {
            explorer.explored.end = SearchEnd::Stopped;
            break;
        }
        explorer.expand(at)?;
    }
    Ok(explorer.explored)
}

impl Explorer<'_> {
    fn progress(&self) -> SearchProgress {
        let (graphs, waiting) = (self.explored.visited.len(), self.waiting.len());
        SearchProgress { graphs, nodes: self.explored.nodes, waiting, best_ns: self.explored.best_ns }
    }

    /// Adds a graph that is new.
    fn add(&mut self, outputs: Vec<Val>, from: Option<(usize, &'static str)>) -> Result<(), SearchError> {
        if !self.known.insert(outputs.clone()) || !self.gives_what_it_makes(&outputs) {
            return Ok(());
        }
        let order = self.explored.terms.reachable(&outputs);
        self.explored.nodes += order.len() as u64;
        let graph = export(self.like, &self.explored.terms, &outputs, &order)?;
        let fused = match fused(&graph, self.target, &self.options.compile) {
            Ok(fused) => fused,
            Err(why) => {
                self.explored.refused.get_or_insert((0, why)).0 += 1;
                return Ok(());
            }
        };
        let estimate = estimate(&fused, &self.options.dims, self.target, &self.options.rates);
        let at = self.explored.visited.len();
        self.explored.best_ns = self.explored.best_ns.min(estimate.ns);
        self.explored.visited.push(VisitedGraph { outputs, estimate, from });
        self.waiting.push(Reverse(FrontierEntry(estimate.ns, at)));
        Ok(())
    }

    /// Whether each output is made by a node, and only one is: a plan has a place for each.
    fn gives_what_it_makes(&self, outputs: &[Val]) -> bool {
        let mut seen = HashSet::new();
        let made = |v: &Val| !matches!(self.explored.terms.term(*v).kind, TermKind::Input(_));
        self.explored.visited.is_empty() || outputs.iter().all(|v| made(v) && seen.insert(*v))
    }

    /// Adds what the rules make of a graph.
    fn expand(&mut self, at: usize) -> Result<(), SearchError> {
        let outputs = self.explored.visited[at].outputs.clone();
        let order = self.explored.terms.reachable(&outputs);
        let mut changes: Vec<(&'static str, Vec<(Val, Val)>)> = Vec::new();
        for &term in &order {
            let v = Val { term, out: 0 };
            changes.extend(self.equal_to(v).iter().map(|&(rule, to)| (rule, vec![(v, to)])));
        }
        for rule in self.rules {
            if let Apply::Joint(apply) = rule.apply {
                changes.extend(apply(&mut self.explored.terms, &order).into_iter().map(|with| (rule.name, with)));
            }
        }
        for (rule, with) in changes {
            if self.explored.nodes >= self.options.budget {
                break;
            }
            if let Some(new) = self.explored.terms.replaced(&outputs, &order, &with) {
                self.add(new, Some((at, rule)))?;
            }
        }
        Ok(())
    }

    fn equal_to(&mut self, v: Val) -> &[(&'static str, Val)] {
        let (terms, rules) = (&mut self.explored.terms, self.rules);
        self.equal.entry(v).or_insert_with(|| {
            let mut all: Vec<(&'static str, Val)> = Vec::new();
            for rule in rules {
                let Apply::Local(apply) = rule.apply else { continue };
                for to in alternatives(terms, apply, v) {
                    if all.iter().all(|(_, known)| *known != to) {
                        all.push((rule.name, to));
                    }
                }
            }
            all
        })
    }
}

/// What a local rule makes of a value, of the same type and not itself.
pub(super) fn alternatives(terms: &mut Terms, apply: super::rule::Local, v: Val) -> Vec<Val> {
    if terms.term(v).types.len() != 1 {
        return Vec::new();
    }
    let made = apply(terms, v).into_iter().flatten();
    made.filter(|&to| to != v && terms.ty(to).dense() == terms.ty(v).dense()).collect()
}

impl ExploredGraphs {
    /// The rules that made a graph of the input, in the order in which they were used.
    pub(super) fn rules_of(&self, mut at: usize) -> Vec<&'static str> {
        let mut rules = Vec::new();
        while let Some((from, rule)) = self.visited[at].from {
            rules.push(rule);
            at = from;
        }
        rules.reverse();
        rules
    }
}
