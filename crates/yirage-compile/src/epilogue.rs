//! What joins products: maps and views of a product's result, one after the other, that nobody else reads; and a map of
//! several products of one input, as of a gate and what it gates, which makes one chain of theirs.
//!
//! All else that they read must be there before the products run, so that no product waits for what it could run beside.

use crate::decision::{Decision, Decisions};
use crate::group;
use crate::names;
use crate::readers::{ValueUses, is_there};
use yirage_ir::region::{MAX_REGION_OPS, is_weight_matmul};
use yirage_ir::{Graph, NodeKind, Op, RegionKind, Type, ValueId};
use yirage_plan::Target;

pub(crate) struct Epilogues<'a> {
    graph: &'a Graph,
    readers: &'a ValueUses,
    target: &'a Target,
}

/// Nodes, ascending, of which the last gives what all others are for.
type EpilogueChain = Vec<usize>;

/// A map or view that reads the end of a chain.
struct EpilogueCandidate {
    node: usize,
    /// The chains that it makes one, by number; or why it joins none.
    joins: Result<Vec<usize>, Stays>,
}

/// Why a node does not join a chain.
enum Stays {
    /// Others read this too.
    Shared(ValueId),
    /// This is not there.
    NotThere(ValueId),
    NoKernel,
    NoRegion(String),
}

impl<'a> Epilogues<'a> {
    pub(crate) fn new(graph: &'a Graph, readers: &'a ValueUses, target: &'a Target) -> Epilogues<'a> {
        Epilogues { graph, readers, target }
    }

    /// Adds to products of one input what joins them, when the nodes of `done` have run.
    pub(crate) fn join(&self, group: &mut Vec<usize>, done: &[bool], decisions: &mut Decisions) {
        if !group.iter().all(|&n| is_weight_matmul(&self.graph.nodes[n])) {
            return;
        }
        let mut chains: Vec<EpilogueChain> = group.iter().map(|&n| vec![n]).collect();
        let joining = |chains: &[EpilogueChain]| {
            let next = |at| self.next(chains, at, done);
            (0..chains.len()).filter_map(next).find_map(|next| Some((next.node, next.joins.ok()?)))
        };
        while let Some((node, joined)) = joining(&chains).filter(|_| group.len() < MAX_REGION_OPS) {
            let wider = wider(&chains, &joined, node);
            chains[joined[0]] = wider;
            let stay = chains.into_iter().enumerate().filter(|(at, _)| !joined[1..].contains(at));
            chains = stay.map(|(_, chain)| chain).collect();
            group.push(node);
        }
        if decisions.are_heard() {
            let told = (0..chains.len()).flat_map(|at| self.decisions(&chains, at, done));
            told.for_each(|decision| decisions.tell(|| decision));
        }
    }

    /// What was decided of all that reads a chain's products.
    fn decisions(&self, chains: &[EpilogueChain], at: usize, done: &[bool]) -> Vec<Decision> {
        let (graph, mut told) = (self.graph, Vec::new());
        let (products, more): (Vec<usize>, Vec<usize>) =
            chains[at].iter().partition(|&&n| is_weight_matmul(&graph.nodes[n]));
        let named = names::listed(&names::of_nodes(graph, &products));
        let (what, of) = match products.len() {
            1 => (format!("joining the product {named}"), "it"),
            _ => (format!("joining the products {named}"), "them"),
        };
        if !more.is_empty() {
            let why = format!("nothing else reads what they read of {of}, and all else is there");
            told.push(Decision::done(names::of_nodes(graph, &more), &what, why));
        }
        if let Some(EpilogueCandidate { node, joins }) = self.next(chains, at, done) {
            let why = match joins {
                Ok(_) => format!("a region has {MAX_REGION_OPS} ops at most"),
                Err(Stays::Shared(value)) => self.readers.wanted(graph, value, &[node]),
                Err(Stays::NotThere(value)) => {
                    format!("{} is not there before the product runs", names::quoted(graph, value))
                }
                Err(Stays::NoKernel) => "no kernel of products runs its ops".into(),
                Err(Stays::NoRegion(why)) => why,
            };
            told.push(Decision::refused(names::of_node(graph, node), what, why));
        }
        told
    }

    /// What a chain gives.
    fn end(&self, chain: &EpilogueChain) -> Option<ValueId> {
        chain.last().and_then(|&n| self.graph.nodes[n].outs.first().copied())
    }

    /// The map or view that reads what a chain gives.
    fn next(&self, chains: &[EpilogueChain], at: usize, done: &[bool]) -> Option<EpilogueCandidate> {
        let made = self.end(&chains[at])?;
        let general = |&n: &usize| general_ops(&self.graph.nodes[n].kind).is_some();
        let node = self.readers.all(made).iter().copied().find(general)?;
        Some(EpilogueCandidate { node, joins: self.joined(chains, at, node, done) })
    }

    /// The chains that a reader of the end of one makes one, that one first.
    fn joined(&self, chains: &[EpilogueChain], at: usize, node: usize, done: &[bool]) -> Result<Vec<usize>, Stays> {
        let reader = &self.graph.nodes[node];
        let mut joined = vec![at];
        for &read in &reader.ins {
            match chains.iter().position(|chain| self.end(chain) == Some(read)) {
                Some(_) if self.readers.only(read).is_none() => return Err(Stays::Shared(read)),
                Some(other) if !joined.contains(&other) => joined.push(other),
                None if !is_there(self.graph, read, done) => return Err(Stays::NotThere(read)),
                _ => {}
            }
        }
        if !self.is_run(chains[at][0], &reader.kind) {
            return Err(Stays::NoKernel);
        }
        let out = reader.outs.first().copied().ok_or(Stays::NoKernel)?;
        self.region(&wider(chains, &joined, node), out).map_err(Stays::NoRegion)?;
        Ok(joined)
    }

    /// Whether a kernel of products runs these ops in the same region.
    fn is_run(&self, product: usize, kind: &NodeKind) -> bool {
        let Some(ops) = general_ops(kind) else { return false };
        let names: Vec<&str> = ops.iter().map(|op| op.name()).chain([self.graph.nodes[product].name()]).collect();
        let mut kernels = self.target.kernels.iter().filter(|k| k.regions.contains(&RegionKind::MatmulGroup));
        kernels.any(|k| names.iter().all(|name| k.rules.iter().any(|rule| rule.op == *name)))
    }

    /// Whether nodes are a region that gives `out`.
    ///
    /// # Errors
    /// Why not.
    fn region(&self, members: &[usize], out: ValueId) -> Result<(), String> {
        let made = group::region(self.graph, members, &[out], RegionKind::MatmulGroup);
        let (region, ins) = made.map_err(|e| e.to_string())?;
        let types: Vec<Type> = ins.iter().map(|&i| self.graph.ty(i).clone()).collect();
        region.infer(&types).map(|_| ()).map_err(|e| e.to_string())
    }
}

/// Some chains as one, with a node that reads them.
fn wider(chains: &[EpilogueChain], joined: &[usize], node: usize) -> EpilogueChain {
    let mut wider: EpilogueChain = joined.iter().flat_map(|&at| &chains[at]).copied().collect();
    wider.sort_unstable();
    wider.push(node);
    wider
}

/// The maps and views that a node is; none where it is anything else.
fn general_ops(kind: &NodeKind) -> Option<Vec<&Op>> {
    let ops: Vec<&Op> = match kind {
        NodeKind::Op(op) => vec![op],
        NodeKind::Region(region) if region.kind == RegionKind::Chain => region.ops().collect(),
        NodeKind::Region(_) => return None,
    };
    ops.iter().all(|op| matches!(op, Op::Map(_) | Op::View(_))).then_some(ops)
}
