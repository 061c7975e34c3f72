//! One graph for several devices: what a rank of them computes, with its part of the weights and of the KV caches.
//!
//! A weight is divided by its rows, so a rank computes whole outputs: no sum is divided, and every rank count gives the same
//! bytes. A value whose columns are divided so stays divided through what computes each head or element by itself, up to
//! attention with a cache whose heads are divided; what needs all of a row gathers it first. All else every rank computes.
//!
//! A graph that has collectives says by itself what its ranks give each other: it is a rank's already, and is left as it is.

use crate::CompileOptions;
use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::rebuild::Rebuild;
use std::collections::{HashMap, HashSet};
use yirage_ir::op::{AllGather, Map};
use yirage_ir::{DType, Dim, Expr, Graph, NodeKind, Op, Type, ValueId, ValueSource};
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
    let division = Division::of(graph, target.ranks);
    division.tell(decisions);
    let ty = |id: ValueId| division.rank_type(id);
    let mut ranked = Ranked { r: Rebuild::retyped(graph, ty)?, division: &division, gathered: HashMap::new() };
    for n in 0..graph.nodes.len() {
        ranked.copy(n)?;
    }
    ranked.finish()
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

/// The weights of a graph that are divided among so many ranks.
pub(crate) fn divided_weights(graph: &Graph, ranks: u32) -> HashSet<ValueId> {
    if ranks <= 1 || is_of_a_rank(graph) { HashSet::new() } else { Division::of(graph, ranks).weights }
}

/// What is divided among the ranks.
struct Division<'a> {
    graph: &'a Graph,
    ranks: u32,
    weights: HashSet<ValueId>,
    caches: HashSet<ValueId>,
    /// Values of which each rank has its part of the columns.
    values: HashSet<ValueId>,
    /// Nodes that compute a rank's part.
    nodes: Vec<bool>,
}

impl<'a> Division<'a> {
    fn of(graph: &'a Graph, ranks: u32) -> Division<'a> {
        let weights = graph.inputs_of(ValueSource::Weight).filter(|&id| is_divisible(graph, id, ranks)).collect();
        let caches = graph.inputs_of(ValueSource::KvCache).filter(|&id| heads(graph.ty(id)).is_multiple_of(ranks));
        let caches: HashSet<ValueId> = caches.collect();
        let mut division = Division { graph, ranks, weights, caches, values: HashSet::new(), nodes: Vec::new() };
        // A cache that some node needs whole is not divided, and what follows is looked at again.
        while !division.follow() {}
        division
    }

    /// Finds what is divided. False where a cache turned out to be needed whole.
    fn follow(&mut self) -> bool {
        (self.values, self.nodes) = (HashSet::new(), Vec::new());
        for n in 0..self.graph.nodes.len() {
            let node = &self.graph.nodes[n];
            let divided = matches!(&node.kind, NodeKind::Op(op) if self.runs_divided(op, &node.ins));
            let whole =
                node.ins.iter().filter_map(|&id| self.graph.kv_cache_of(id)).find(|id| self.caches.contains(id));
            if let (false, Some(cache)) = (divided, whole) {
                self.caches.remove(&cache);
                return false;
            }
            if divided {
                self.values.extend(node.outs.iter().filter(|&&id| self.graph.kv_cache_of(id).is_none()));
            }
            self.nodes.push(divided);
        }
        true
    }

    /// Whether a rank can compute its part of a node's result from its parts of what the node reads.
    fn runs_divided(&self, op: &Op, ins: &[ValueId]) -> bool {
        let part = |at: usize| ins.get(at).is_some_and(|id| self.values.contains(id));
        let width = |at: usize| self.graph.ty(ins[at]).width().unwrap_or(0) as u32 / self.ranks;
        let cache = |at: usize| self.graph.kv_cache_of(ins[at]).is_some_and(|id| self.caches.contains(&id));
        let by = |heads: u32| heads.is_multiple_of(self.ranks);
        match op {
            Op::Linear(_) => self.weights.contains(&ins[1]),
            Op::Map(_) => (0..ins.len()).all(part),
            Op::RmsNorm(op) => part(0) && op.width > 0 && width(0).is_multiple_of(op.width),
            Op::Rope(op) => part(0) && op.width > 0 && width(0).is_multiple_of(op.width),
            Op::KvAppend(op) => cache(0) && by(op.kv_heads) && part(1) && (ins.len() == 3 || part(2)),
            // Sinks are one for each head of all ranks.
            Op::Attention(op) => op.cached && ins.len() == 5 && part(0) && cache(1) && by(op.heads) && by(op.kv_heads),
            _ => false,
        }
    }

    /// The type of an input as a rank has it.
    fn rank_type(&self, id: ValueId) -> Type {
        let mut ty = self.graph.ty(id).clone();
        let axis = match (self.weights.contains(&id), self.caches.contains(&id)) {
            (true, _) => 0,
            (_, true) => 1,
            _ => return ty,
        };
        if let Dim::Const(n) = &mut ty.shape[axis] {
            *n /= self.ranks;
        }
        ty
    }

    fn tell(&self, decisions: &mut Decisions) {
        let ranks = self.ranks;
        for id in self.graph.inputs_of(ValueSource::Weight).chain(self.graph.inputs_of(ValueSource::KvCache)) {
            let (name, ty) = (vec![self.graph.value(id).name.clone()], self.graph.ty(id));
            let what = format!("a part for each of {ranks} ranks");
            if self.weights.contains(&id) || self.caches.contains(&id) {
                decisions.tell(|| Decision::done(name, what, format!("{ty} becomes {}", self.rank_type(id))));
            } else if self.graph.value(id).source == ValueSource::KvCache || is_matmul_weight(self.graph, id) {
                let why = format!("{ty} does not divide by heads or rows, or something reads all of it");
                decisions.tell(|| Decision::refused(name, what, why));
            }
        }
    }
}

fn heads(cache: &Type) -> u32 {
    cache.shape.get(1).and_then(|dim| dim.as_const()).unwrap_or(1) as u32
}

/// Whether products alone read a weight, each as one matrix.
fn is_matmul_weight(graph: &Graph, id: ValueId) -> bool {
    let mut reads = graph.nodes.iter().filter(|node| node.ins.contains(&id)).peekable();
    let product = |op: &Op, ins: &[ValueId]| matches!(op, Op::Linear(op) if op.groups == 1) && ins[0] != id;
    reads.peek().is_some()
        && reads.all(|node| matches!(&node.kind, NodeKind::Op(op) if product(op, &node.ins)))
        && !graph.outputs.contains(&id)
}

fn is_divisible(graph: &Graph, id: ValueId, ranks: u32) -> bool {
    let ty = graph.ty(id);
    let rows = ty.shape.first().and_then(|dim| dim.as_const()).filter(|_| ty.shape.len() == 2 && ty.strides.is_none());
    rows.is_some_and(|rows| (rows as u32).is_multiple_of(ranks)) && is_matmul_weight(graph, id)
}

/// The graph of a rank.
struct Ranked<'a> {
    r: Rebuild<'a>,
    division: &'a Division<'a>,
    /// Divided values as wholes, by their old names.
    gathered: HashMap<ValueId, ValueId>,
}

impl Ranked<'_> {
    fn copy(&mut self, n: usize) -> Result<(), CompileError> {
        let (node, divided) = (&self.r.old.nodes[n], self.division.nodes[n]);
        let ranks = self.division.ranks;
        let mut ins = Vec::with_capacity(node.ins.len());
        for &id in &node.ins {
            // Products by parts read whole rows; all else by parts reads parts, and has no other divided input.
            let whole = !divided || matches!(&node.kind, NodeKind::Op(Op::Linear(_)));
            ins.push(if whole { self.whole(id)? } else { self.r.get(id) });
        }
        let mut kind = node.kind.clone();
        match &mut kind {
            NodeKind::Op(Op::KvAppend(op)) if divided => op.kv_heads /= ranks,
            NodeKind::Op(Op::Attention(op)) if divided => {
                (op.heads, op.kv_heads) = (op.heads / ranks, op.kv_heads / ranks)
            }
            _ => {}
        }
        Ok(self.r.copy_as(n, kind, &ins)?)
    }

    /// All of a value.
    fn whole(&mut self, old: ValueId) -> Result<ValueId, CompileError> {
        let part = self.r.get(old);
        if !self.division.values.contains(&old) {
            return Ok(part);
        }
        if let Some(&known) = self.gathered.get(&old) {
            return Ok(known);
        }
        let gather = AllGather { ranks: self.division.ranks };
        let name = format!("{}.gathered", self.r.old.value(old).name);
        let made = self.r.add(NodeKind::Op(gather.into()), &[part], &[name])?[0];
        self.gathered.insert(old, made);
        Ok(made)
    }

    fn finish(mut self) -> Result<Graph, CompileError> {
        for &id in &self.r.old.outputs {
            if self.r.old.kv_cache_of(id).is_none() {
                let whole = self.whole(id)?;
                self.r.bind(id, whole);
            }
        }
        Ok(self.r.finish())
    }
}
