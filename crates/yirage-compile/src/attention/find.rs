//! Which nodes of a graph are attention: a product, an exponential of it, and a product of what becomes of that.

use crate::readers::ValueUses;
use crate::terms::tiles::of_view;
use std::collections::BTreeSet;
use yirage_ir::expr::{Func, Term};
use yirage_ir::op::View;
use yirage_ir::{Dim, Graph, NodeKind, Op, Strided, ValueId, ValueSource};

/// Queries of a head from which on a copy of keys takes less time than reading them far apart.
const COPIED: usize = 8;

/// Nodes that are attention.
pub(super) struct AttentionMatch {
    /// The scores' product, what makes weights of them, the second product, and what follows it alone; ascending.
    pub(super) nodes: Vec<usize>,
    /// Views of what these read that may be inside as well, ascending: most of them first, then fewer.
    pub(super) views: Vec<Vec<usize>>,
    /// The product of queries and keys.
    pub(super) scores: usize,
    /// The product of weights and values.
    pub(super) value_matmul: usize,
}

impl AttentionMatch {
    /// The last node, whose value stays.
    pub(super) fn last(&self) -> usize {
        self.nodes[self.nodes.len() - 1]
    }

    /// What the last node makes.
    pub(super) fn out(&self, graph: &Graph) -> ValueId {
        graph.nodes[self.last()].outs[0]
    }

    /// A value inside that something else wants.
    pub(super) fn wanted_elsewhere(&self, graph: &Graph, readers: &ValueUses) -> Option<ValueId> {
        let inner = self.nodes.iter().filter(|&&n| n != self.last()).map(|&n| graph.nodes[n].outs[0]);
        let elsewhere =
            |id: &ValueId| readers.is_output(*id) || readers.all(*id).iter().any(|n| !self.nodes.contains(n));
        inner.into_iter().find(elsewhere)
    }
}

/// All attentions of a graph; no node is of two.
pub(super) fn all(graph: &Graph, readers: &ValueUses) -> Vec<AttentionMatch> {
    let mut found: Vec<AttentionMatch> = Vec::new();
    for n in (0..graph.nodes.len()).filter(|&n| matches!(op(graph, n), Some(Op::Contract(_)))) {
        let taken = |nodes: &[usize]| found.iter().any(|f| f.nodes.iter().any(|n| nodes.contains(n)));
        if let Some(one) = behind(graph, readers, n).filter(|one| !taken(&one.nodes)) {
            found.push(one);
        }
    }
    found
}

fn op(graph: &Graph, n: usize) -> Option<&Op> {
    if let NodeKind::Op(op) = &graph.nodes[n].kind { Some(op) } else { None }
}

fn producer(graph: &Graph, id: ValueId) -> Option<usize> {
    match graph.value(id).source {
        ValueSource::Node { node, .. } => Some(node as usize),
        _ => None,
    }
}

/// The attention whose second product is node `product`.
fn behind(graph: &Graph, readers: &ValueUses, product: usize) -> Option<AttentionMatch> {
    let (scores, between) = before(graph, *graph.nodes[product].ins.first()?)?;
    let mut nodes: Vec<usize> = vec![scores];
    let mut exponential = false;
    for n in between {
        if graph.nodes[n].ins.iter().any(|&i| producer(graph, i).is_some_and(|m| nodes.contains(&m))) {
            exponential |= has_exp(op(graph, n)?);
            nodes.push(n);
        }
    }
    if !exponential {
        return None;
    }
    nodes.push(product);
    // Dimensions that blocks cut: those of heads and that of queries.
    let shape = &graph.ty(*graph.nodes[product].outs.first()?).shape;
    let outer = shape.split_last().map_or(0, |(_, outer)| outer.len());
    let mut cut: Vec<u32> = (0..outer).filter(|&at| shape[at] != Dim::Const(1)).map(|at| at as u32).collect();
    while let Some(next) = follows(graph, readers, nodes[nodes.len() - 1], &mut cut) {
        nodes.push(next);
    }
    let copied = is_copied(graph, scores);
    let all = views(graph, &nodes, |read| read != (scores, 1) || !copied);
    // Heads that are a part of a dimension are cut apart by a copy of the queries.
    let fewer = views(graph, &nodes, |(n, at)| n != scores || (at == 1 && !copied));
    let views = vec![all, fewer, Vec::new()];
    Some(AttentionMatch { nodes, views, scores, value_matmul: product })
}

/// The nearest product that a value is made of, and what is between, ascending.
fn before(graph: &Graph, value: ValueId) -> Option<(usize, BTreeSet<usize>)> {
    let (mut between, mut products) = (BTreeSet::new(), BTreeSet::new());
    let mut open = vec![value];
    while let Some(id) = open.pop() {
        let Some(n) = producer(graph, id) else { continue };
        match op(graph, n) {
            Some(Op::Contract(_)) => _ = products.insert(n),
            Some(Op::Map(_) | Op::View(_) | Op::Reduce(_) | Op::Softmax(_)) if between.insert(n) => {
                open.extend(&graph.nodes[n].ins);
            }
            _ => {}
        }
    }
    Some((products.pop_last()?, between))
}

fn has_exp(op: &Op) -> bool {
    match op {
        Op::Map(map) => map.expr.terms().iter().any(|term| matches!(term, Term::Call(Func::Exp, _))),
        Op::Softmax(_) => true,
        _ => false,
    }
}

/// A view or a map of one shape that alone reads what a node makes, and in which the dimensions of `cut` are seen.
fn follows(graph: &Graph, readers: &ValueUses, n: usize, cut: &mut Vec<u32>) -> Option<usize> {
    let made = *graph.nodes[n].outs.first()?;
    let next = readers.only(made)?;
    let shape = |id: ValueId| &graph.ty(id).shape;
    match op(graph, next)? {
        Op::View(view) => {
            *cut = cut.iter().map(|&dim| of_view(&view.form, shape(made), dim)).collect::<Option<_>>()?;
            Some(next)
        }
        Op::Map(_) if shape(*graph.nodes[next].outs.first()?) == shape(made) => Some(next),
        _ => None,
    }
}

/// The views of what nodes read, of the reads by a node's input for which `joins` is true.
fn views(graph: &Graph, nodes: &[usize], joins: impl Fn((usize, usize)) -> bool) -> Vec<usize> {
    let mut views = BTreeSet::new();
    let reads = nodes.iter().flat_map(|&n| (0..graph.nodes[n].ins.len()).map(move |at| (n, at)));
    let mut open: Vec<ValueId> = reads.filter(|&read| joins(read)).map(|(n, at)| graph.nodes[n].ins[at]).collect();
    while let Some(id) = open.pop() {
        let Some((n, _)) = view(graph, id).filter(|(n, _)| !nodes.contains(n)) else { continue };
        if views.insert(n) {
            open.extend(&graph.nodes[n].ins);
        }
    }
    views.into_iter().collect()
}

/// Whether the keys of a product are copied for it: where their elements lie far apart for a product of some queries, each
/// block would turn them around again.
fn is_copied(graph: &Graph, scores: usize) -> bool {
    let [queries, keys] = graph.nodes[scores].ins[..] else { return false };
    let rows = graph.ty(queries).shape.iter().nth_back(1).and_then(|rows| rows.as_const());
    let near = lies(graph, keys).is_some_and(|keys| keys.strides.last() == Some(&1));
    rows.is_some_and(|rows| rows >= COPIED) && !near
}

/// Where the elements of a value lie; nothing where no strides say it.
fn lies(graph: &Graph, id: ValueId) -> Option<Strided> {
    match view(graph, id) {
        Some((n, view)) => view.of(&lies(graph, graph.nodes[n].ins[0])?),
        None => Strided::of(graph.ty(id)),
    }
}

/// The view that a value is.
fn view(graph: &Graph, id: ValueId) -> Option<(usize, &View)> {
    let n = producer(graph, id)?;
    if let Some(Op::View(view)) = op(graph, n) { Some((n, view)) } else { None }
}
