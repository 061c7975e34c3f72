//! Makes chains: maps and views join the reduction or contraction beside them, so that nothing between them is in memory.
//!
//! A view goes to each of its readers, since it costs nothing there; a map goes to its only one. What does not make a
//! chain ([`Chain::of`](yirage_ir::region::Chain::of)) stays a node, and a view that stays is a copy.

use crate::CompileOptions;
use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::group;
use crate::names;
use crate::readers::ValueUses;
use crate::rebuild::Rebuild;
use yirage_ir::{Graph, NodeKind, Op, RegionKind, Type, ValueId, ValueSource};
use yirage_plan::Target;

pub(crate) fn run(
    graph: &Graph,
    target: &Target,
    options: &CompileOptions,
    decisions: &mut Decisions,
) -> Result<Graph, CompileError> {
    if !options.fuse {
        decisions.tell(Decision::fusion_is_off);
        return Ok(graph.clone());
    }
    if !target.runs_regions(RegionKind::Chain) {
        decisions.tell(|| Decision::refused(Vec::new(), "chains", "no kernel of the target runs regions of this kind"));
        return Ok(graph.clone());
    }
    fused(graph, decisions)
}

/// The graph with its chains.
pub(crate) fn fused(graph: &Graph, decisions: &mut Decisions) -> Result<Graph, CompileError> {
    let units = Units::of(graph);
    let mut r = Rebuild::new(graph, |_| true)?;
    for n in units.needed() {
        if decisions.are_heard() {
            units.decisions(n).into_iter().for_each(|decision| decisions.tell(|| decision));
        }
        match &units.of_node[n][..] {
            [n] => {
                let ins: Vec<ValueId> = graph.nodes[*n].ins.iter().map(|&i| r.get(i)).collect();
                r.copy(*n, &ins)?;
            }
            members => group::emit(graph, members, &graph.nodes[n].outs, RegionKind::Chain, &mut r)?,
        }
    }
    Ok(r.finish())
}

/// What is computed together.
struct Units<'a> {
    graph: &'a Graph,
    readers: ValueUses,
    /// For each node the nodes that are computed with it to make its value, ascending, itself last.
    of_node: Vec<Vec<usize>>,
}

fn joins(graph: &Graph, n: usize) -> bool {
    let general = |op: &Op| matches!(op, Op::Map(_) | Op::View(_) | Op::Reduce(_) | Op::Contract(_));
    matches!(&graph.nodes[n].kind, NodeKind::Op(op) if general(op))
}

fn is_view(graph: &Graph, n: usize) -> bool {
    matches!(&graph.nodes[n].kind, NodeKind::Op(Op::View(_)))
}

impl<'a> Units<'a> {
    fn of(graph: &'a Graph) -> Units<'a> {
        let of_node = (0..graph.nodes.len()).map(|n| vec![n]).collect();
        let mut units = Units { graph, readers: ValueUses::of(graph), of_node };
        for n in (0..graph.nodes.len()).filter(|&n| joins(graph, n)) {
            units.of_node[n] = units.grow(n);
        }
        units
    }

    /// The nodes whose values are in memory, ascending: what the graph gives back, and what other units read of them.
    fn needed(&self) -> Vec<usize> {
        let maker = |id: ValueId| match self.graph.value(id).source {
            ValueSource::Node { node, .. } => Some(node as usize),
            _ => None,
        };
        let mut needed = vec![false; self.graph.nodes.len()];
        self.graph.outputs.iter().filter_map(|&o| maker(o)).for_each(|n| needed[n] = true);
        for n in (0..needed.len()).rev() {
            // What a needed unit reads stands before it, and is looked at after it.
            if !needed[n] {
                continue;
            }
            let members = &self.of_node[n];
            let read = members.iter().flat_map(|&m| &self.graph.nodes[m].ins).filter_map(|&i| maker(i));
            read.filter(|m| !members.contains(m)).for_each(|m| needed[m] = true);
        }
        (0..needed.len()).filter(|&n| needed[n]).collect()
    }

    /// The chain that ends with node `n`, as large as it may be.
    fn grow(&self, n: usize) -> Vec<usize> {
        let mut members = vec![n];
        let mut refused: Vec<usize> = Vec::new();
        loop {
            let inputs = members.iter().flat_map(|&m| &self.graph.nodes[m].ins);
            let makers = inputs.filter_map(|&i| match self.graph.value(i).source {
                ValueSource::Node { node, .. } => Some((node as usize, i)),
                _ => None,
            });
            let open = |(m, value): &(usize, ValueId)| {
                let new = !members.contains(m) && !refused.contains(m) && joins(self.graph, *m);
                new && (is_view(self.graph, *m) || self.only_inside(*value, &members))
            };
            // The latest first: what is nearest joins before what it reads.
            let Some((next, _)) = makers.filter(open).max_by_key(|(m, _)| *m) else { return members };
            let mut wider = [&members[..], &[next]].concat();
            wider.sort_unstable();
            if self.is_chain(&wider, n).is_ok() { members = wider } else { refused.push(next) }
        }
    }

    /// Whether a value is read once, for the value that the members make; views on the way are read once too.
    fn only_inside(&self, value: ValueId, members: &[usize]) -> bool {
        self.wanted_elsewhere(value, members).is_none()
    }

    /// The value, or the view of it, that others read too.
    fn wanted_elsewhere(&self, value: ValueId, members: &[usize]) -> Option<ValueId> {
        let Some(reader) = self.readers.only(value).filter(|reader| members.contains(reader)) else {
            return Some(value);
        };
        if members.last() == Some(&reader) || !is_view(self.graph, reader) {
            return None;
        }
        self.wanted_elsewhere(self.graph.nodes[reader].outs[0], members)
    }

    /// Whether nodes make a chain that ends with node `last`.
    ///
    /// # Errors
    /// Why not.
    fn is_chain(&self, members: &[usize], last: usize) -> Result<(), String> {
        let made = group::region(self.graph, members, &self.graph.nodes[last].outs, RegionKind::Chain);
        let (region, ins) = made.map_err(|e| e.to_string())?;
        let types: Vec<Type> = ins.iter().map(|&i| self.graph.ty(i).clone()).collect();
        region.infer(&types).map(|_| ()).map_err(|e| e.to_string())
    }

    /// What was decided of the unit that ends with node `n`.
    fn decisions(&self, n: usize) -> Vec<Decision> {
        let (graph, members) = (self.graph, &self.of_node[n]);
        let mut told = Vec::new();
        if members.len() > 1 {
            let why = "what only this chain reads is computed where it is read, and views are strides";
            told.push(Decision::done(
                names::of_nodes(graph, members),
                format!("a chain of {} ops", members.len()),
                why,
            ));
        }
        let inputs = members.iter().filter(|&&m| joins(graph, m)).flat_map(|&m| &graph.nodes[m].ins);
        for &value in inputs {
            let ValueSource::Node { node, .. } = graph.value(value).source else { continue };
            let maker = node as usize;
            if members.contains(&maker) || !joins(graph, maker) {
                continue;
            }
            let elsewhere = if is_view(graph, maker) { None } else { self.wanted_elsewhere(value, members) };
            let wider = || {
                let mut wider = [&members[..], &[maker]].concat();
                wider.sort_unstable();
                self.is_chain(&wider, n).err()
            };
            let why = elsewhere.map_or_else(wider, |shared| Some(self.readers.wanted(graph, shared, members)));
            let what = format!("joining the chain of {}", names::quoted(graph, graph.nodes[n].outs[0]));
            told.extend(why.map(|why| Decision::refused(names::one(graph, value), what, why)));
        }
        told
    }
}
