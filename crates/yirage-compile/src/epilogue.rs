//! What joins a product: maps and views of its result, one after the other, that nobody else reads.
//!
//! All else that they read must be there before the product runs, so that no product waits for what it could run beside.

use crate::group;
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
    pub(crate) fn join(&self, group: &mut Vec<usize>, done: &[bool]) {
        if !group.iter().all(|&n| is_product(&self.graph.nodes[n])) {
            return;
        }
        for product in group.clone() {
            let mut members = vec![product];
            while let Some(next) = self.next(&members, done) {
                members.push(next);
            }
            if group.len() + members.len() <= MAX_REGION_OPS {
                group.extend(&members[1..]);
            }
        }
    }

    /// The node that joins a product and what has joined it.
    fn next(&self, members: &[usize], done: &[bool]) -> Option<usize> {
        let made = members.last().and_then(|&n| self.graph.nodes[n].outs.first().copied())?;
        let next = self.readers.only(made)?;
        let node = &self.graph.nodes[next];
        let there = node.ins.iter().all(|&i| i == made || is_there(self.graph, i, done));
        let joins = there && self.is_run(members[0], &node.kind);
        let wider = [members, &[next]].concat();
        (joins && self.is_region(&wider, node.outs.first().copied()?)).then_some(next)
    }

    /// Whether a kernel of products runs these ops in the same region.
    fn is_run(&self, product: usize, kind: &NodeKind) -> bool {
        let ops: Vec<&Op> = match kind {
            NodeKind::Op(op) => vec![op],
            NodeKind::Region(region) if region.kind == RegionKind::Chain => region.ops().collect(),
            NodeKind::Region(_) => return false,
        };
        let names: Vec<&str> = ops.iter().map(|op| op.name()).chain([self.graph.nodes[product].name()]).collect();
        let general = ops.iter().all(|op| matches!(op, Op::Map(_) | Op::View(_)));
        let mut kernels = self.target.kernels.iter().filter(|k| k.regions.contains(&RegionKind::Products));
        general && kernels.any(|k| names.iter().all(|name| k.rules.iter().any(|rule| rule.op == *name)))
    }

    fn is_region(&self, members: &[usize], out: ValueId) -> bool {
        let made = group::region(self.graph, members, &[out], RegionKind::Products);
        let Ok((region, ins)) = made else { return false };
        let types: Vec<Type> = ins.iter().map(|&i| self.graph.ty(i).clone()).collect();
        region.infer(&types).is_ok()
    }
}
