//! What joins a product: maps and views of its result, one after the other, that nobody else reads.
//!
//! All else that they read must be there before the product runs, so that no product waits for what it could run beside.

use crate::decision::{Decision, Decisions};
use crate::group;
use crate::names;
use crate::readers::{Readers, is_there};
use yirage_ir::region::{MAX_REGION_OPS, is_product};
use yirage_ir::{Graph, NodeKind, Op, RegionKind, Type, ValueId};
use yirage_plan::Target;

pub(crate) struct Epilogues<'a> {
    graph: &'a Graph,
    readers: &'a Readers,
    target: &'a Target,
}

impl<'a> Epilogues<'a> {
    pub(crate) fn new(graph: &'a Graph, readers: &'a Readers, target: &'a Target) -> Epilogues<'a> {
        Epilogues { graph, readers, target }
    }

    /// Adds to products of one input what joins each of them, when the nodes of `done` have run.
    pub(crate) fn join(&self, group: &mut Vec<usize>, done: &[bool], decisions: &mut Decisions) {
        if !group.iter().all(|&n| is_product(&self.graph.nodes[n])) {
            return;
        }
        for product in group.clone() {
            let mut members = vec![product];
            while let Some(next) = self.next(&members, done) {
                members.push(next);
            }
            let fits = group.len() + members.len() <= MAX_REGION_OPS;
            if decisions.are_heard() {
                self.decisions(&members, done, fits).into_iter().for_each(|decision| decisions.tell(|| decision));
            }
            if fits {
                group.extend(&members[1..]);
            }
        }
    }

    /// What was decided of all that reads a product.
    fn decisions(&self, members: &[usize], done: &[bool], fits: bool) -> Vec<Decision> {
        let (graph, mut told) = (self.graph, Vec::new());
        let what = format!("joining the product {}", names::listed(&names::of_node(graph, members[0])));
        if members.len() > 1 {
            let values = names::of_nodes(graph, &members[1..]);
            told.push(if fits {
                Decision::done(values, &what, "nothing else reads what they read of it, and all else is there")
            } else {
                Decision::refused(values, &what, format!("a region has {MAX_REGION_OPS} ops at most"))
            });
        }
        let last = members.last().and_then(|&n| graph.nodes[n].outs.first().copied());
        let refused = last.and_then(|made| self.refusal(members, made, done));
        told.extend(refused.map(|(n, why)| Decision::refused(names::of_node(graph, n), what, why)));
        told
    }

    /// The map or view that does not join what makes `made`, and why.
    fn refusal(&self, members: &[usize], made: ValueId, done: &[bool]) -> Option<(usize, String)> {
        let graph = self.graph;
        let general = |&n: &usize| general_ops(&graph.nodes[n].kind).is_some();
        let next = self.readers.all(made).iter().copied().find(general)?;
        if self.readers.only(made).is_none() {
            return Some((next, self.readers.wanted(graph, made, &[next])));
        }
        let node = &graph.nodes[next];
        if let Some(&later) = node.ins.iter().find(|&&i| i != made && !is_there(graph, i, done)) {
            return Some((next, format!("{} is not there before the product runs", names::quoted(graph, later))));
        }
        if !self.is_run(members[0], &node.kind) {
            return Some((next, "no kernel of products runs its ops".into()));
        }
        let wider = [members, &[next]].concat();
        Some((next, self.region(&wider, node.outs.first().copied()?).err()?))
    }

    /// The node that joins a product and what has joined it.
    fn next(&self, members: &[usize], done: &[bool]) -> Option<usize> {
        let made = members.last().and_then(|&n| self.graph.nodes[n].outs.first().copied())?;
        let next = self.readers.only(made)?;
        let node = &self.graph.nodes[next];
        let there = node.ins.iter().all(|&i| i == made || is_there(self.graph, i, done));
        let joins = there && self.is_run(members[0], &node.kind);
        let wider = [members, &[next]].concat();
        (joins && self.region(&wider, node.outs.first().copied()?).is_ok()).then_some(next)
    }

    /// Whether a kernel of products runs these ops in the same region.
    fn is_run(&self, product: usize, kind: &NodeKind) -> bool {
        let Some(ops) = general_ops(kind) else { return false };
        let names: Vec<&str> = ops.iter().map(|op| op.name()).chain([self.graph.nodes[product].name()]).collect();
        let mut kernels = self.target.kernels.iter().filter(|k| k.regions.contains(&RegionKind::Products));
        kernels.any(|k| names.iter().all(|name| k.rules.iter().any(|rule| rule.op == *name)))
    }

    /// Whether nodes are a region that gives `out`.
    ///
    /// # Errors
    /// Why not.
    fn region(&self, members: &[usize], out: ValueId) -> Result<(), String> {
        let made = group::region(self.graph, members, &[out], RegionKind::Products);
        let (region, ins) = made.map_err(|e| e.to_string())?;
        let types: Vec<Type> = ins.iter().map(|&i| self.graph.ty(i).clone()).collect();
        region.infer(&types).map(|_| ()).map_err(|e| e.to_string())
    }
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
