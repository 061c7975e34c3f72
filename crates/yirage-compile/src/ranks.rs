//! One graph for several devices: what a rank of them computes, with its part of the weights and of the KV caches.
//!
//! A weight is divided by its rows, so a rank computes whole outputs: no sum is divided, and every rank count gives the same
//! bytes. A value whose columns are divided so stays divided through what computes each head or element by itself, up to
//! attention with a cache whose heads are divided, or whose one head all query heads read; what needs all of a row gathers it
//! first. Of each expert a rank has its rows, and of a grouped product whole groups. All else every rank computes.
//!
//! A graph that has collectives says by itself what its ranks give each other: it is a rank's already, and is left as it is.

use crate::CompileOptions;
use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::rebuild::Rebuild;
use std::collections::{HashMap, HashSet};
use yirage_ir::op::{AllGather, Map, View, ViewForm};
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
    /// Values of which each rank has its part of the columns, with the number of equal spans of a row that are divided each by
    /// itself: the results of a token's experts.
    values: HashMap<ValueId, u32>,
    /// Nodes that compute a rank's part.
    nodes: Vec<bool>,
}

impl<'a> Division<'a> {
    fn of(graph: &'a Graph, ranks: u32) -> Division<'a> {
        let weights = graph.inputs_of(ValueSource::Weight).filter(|&id| is_divisible(graph, id, ranks)).collect();
        let caches = graph.inputs_of(ValueSource::KvCache).filter(|&id| heads(graph.ty(id)).is_multiple_of(ranks));
        let caches: HashSet<ValueId> = caches.collect();
        let mut division = Division { graph, ranks, weights, caches, values: HashMap::new(), nodes: Vec::new() };
        // What some node needs whole is not divided, and what follows is looked at again.
        while !division.follow() {}
        division
    }

    /// Finds what is divided. False where a cache or a weight turned out to be needed whole.
    fn follow(&mut self) -> bool {
        (self.values, self.nodes) = (HashMap::new(), Vec::new());
        for n in 0..self.graph.nodes.len() {
            let node = &self.graph.nodes[n];
            let spans = match &node.kind {
                NodeKind::Op(op) => self.spans_of_part(op, &node.ins),
                NodeKind::Region(_) => None,
            };
            if spans.is_none() {
                let caches = node.ins.iter().filter_map(|&id| self.graph.kv_cache_of(id));
                if let Some(cache) = caches.into_iter().find(|id| self.caches.contains(id)) {
                    self.caches.remove(&cache);
                    return false;
                }
                if let Some(weight) = node.ins.iter().find(|id| self.weights.contains(id)) {
                    self.weights.remove(weight);
                    return false;
                }
            }
            if let Some(spans) = spans {
                let outs = node.outs.iter().filter(|&&id| self.graph.kv_cache_of(id).is_none());
                self.values.extend(outs.map(|&id| (id, spans)));
            }
            self.nodes.push(spans.is_some());
        }
        true
    }

    /// If a rank can compute its part of a node's result from its parts of what the node reads: the spans of a row of the result
    /// that are divided each by itself.
    fn spans_of_part(&self, op: &Op, ins: &[ValueId]) -> Option<u32> {
        let spans = |at: usize| ins.get(at).and_then(|id| self.values.get(id).copied());
        let columns = |at: usize| spans(at) == Some(1);
        let width = |at: usize| self.graph.ty(ins[at]).width().unwrap_or(0) as u32 / self.ranks;
        let cache = |at: usize| self.graph.kv_cache_of(ins[at]).is_some_and(|id| self.caches.contains(&id));
        let by = |heads: u32| heads.is_multiple_of(self.ranks);
        let whole_heads = |of: u32| columns(0) && of > 0 && width(0).is_multiple_of(of);
        let yes = match op {
            Op::Linear(op) => self.weights.contains(&ins[1]) && (op.groups == 1 || columns(0)),
            Op::ExpertLinear(op) => return self.weights.contains(&ins[1]).then_some(op.top_k),
            Op::Map(_) => return spans(0).filter(|&first| (1..ins.len()).all(|at| spans(at) == Some(first))),
            Op::ExpertSum(op) => spans(0) == Some(op.top_k) && spans(1).is_none(),
            Op::RmsNorm(op) => whole_heads(op.width),
            Op::Rope(op) => whole_heads(op.width),
            Op::ConcatHeads(op) => columns(0) && columns(1) && by(op.groups),
            Op::KvAppend(op) => cache(0) && by(op.kv_heads) && columns(1) && (ins.len() == 3 || columns(2)),
            // Sinks are one for each head of all ranks. A head that all query heads read is on every rank.
            Op::Attention(op) => {
                let keys = if cache(1) { by(op.kv_heads) } else { op.kv_heads == 1 };
                op.cached && ins.len() == 5 && columns(0) && by(op.heads) && keys
            }
            _ => false,
        };
        yes.then_some(1)
    }

    /// The type of an input as a rank has it.
    fn rank_type(&self, id: ValueId) -> Type {
        let mut ty = self.graph.ty(id).clone();
        let axis = match (self.weights.contains(&id), self.caches.contains(&id)) {
            (true, _) => row_axis(&ty),
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

/// The dimension of a weight's rows: behind it come the elements of a row, before it experts.
fn row_axis(weight: &Type) -> usize {
    weight.shape.len().saturating_sub(2)
}

/// Whether products alone read a weight.
fn is_matmul_weight(graph: &Graph, id: ValueId) -> bool {
    groups_of(graph, id).is_some() && !graph.outputs.contains(&id)
}

/// As how many matrices one below the other products read a weight, if they alone read it and all alike. Experts lie along a
/// dimension of their own.
fn groups_of(graph: &Graph, id: ValueId) -> Option<u32> {
    let reads = graph.nodes.iter().filter(|node| node.ins.contains(&id));
    let mut groups = reads.map(|node| match &node.kind {
        NodeKind::Op(Op::Linear(op)) if node.ins[0] != id => Some(op.groups),
        NodeKind::Op(Op::ExpertLinear(_)) if node.ins[0] != id => Some(1),
        _ => None,
    });
    let first = groups.next()??;
    groups.all(|other| other == Some(first)).then_some(first)
}

fn is_divisible(graph: &Graph, id: ValueId, ranks: u32) -> bool {
    let ty = graph.ty(id);
    let by = |n: u32| n.is_multiple_of(ranks);
    let rows = ty.shape.get(row_axis(ty)).and_then(|dim| dim.as_const());
    let is_matrices = matches!(ty.shape.len(), 2 | 3) && ty.strides.is_none();
    is_matrices
        && rows.is_some_and(|rows| by(rows as u32))
        && is_matmul_weight(graph, id)
        && groups_of(graph, id).is_some_and(|groups| groups == 1 || by(groups))
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
        // Products by parts read whole rows, but for groups, which read their own; all else by parts reads parts.
        let reads_rows = match &node.kind {
            NodeKind::Op(Op::Linear(op)) => op.groups == 1,
            NodeKind::Op(Op::ExpertLinear(_)) => true,
            _ => false,
        };
        for &id in &node.ins {
            ins.push(if !divided || reads_rows { self.whole(id)? } else { self.r.get(id) });
        }
        let mut kind = node.kind.clone();
        match &mut kind {
            NodeKind::Op(Op::Linear(op)) if divided && op.groups > 1 => op.groups /= ranks,
            NodeKind::Op(Op::ConcatHeads(op)) if divided => op.groups /= ranks,
            NodeKind::Op(Op::KvAppend(op)) if divided => op.kv_heads /= ranks,
            NodeKind::Op(Op::Attention(op)) if divided => {
                let one = op.kv_heads == 1;
                (op.heads, op.kv_heads) = (op.heads / ranks, if one { 1 } else { op.kv_heads / ranks });
            }
            _ => {}
        }
        Ok(self.r.copy_as(n, kind, &ins)?)
    }

    /// All of a value.
    fn whole(&mut self, old: ValueId) -> Result<ValueId, CompileError> {
        let part = self.r.get(old);
        let Some(&spans) = self.division.values.get(&old) else { return Ok(part) };
        if let Some(&known) = self.gathered.get(&old) {
            return Ok(known);
        }
        let gather = AllGather { ranks: self.division.ranks };
        let name = format!("{}.gathered", self.r.old.value(old).name);
        let mut made = self.r.add(NodeKind::Op(gather.into()), &[part], std::slice::from_ref(&name))?[0];
        if spans > 1 {
            made = self.interleaved(made, old, spans, &name)?;
        }
        self.gathered.insert(old, made);
        Ok(made)
    }

    /// A gathered value, of which each rank gave its part of every span, with whole spans one after the other.
    fn interleaved(
        &mut self,
        gathered: ValueId,
        old: ValueId,
        spans: u32,
        name: &str,
    ) -> Result<ValueId, CompileError> {
        let (ty, ranks) = (self.r.old.ty(old), self.division.ranks);
        let (rows, width) = (ty.shape[0], ty.width().unwrap_or(0) as u32);
        let parts = [rows, Dim::Const(ranks), Dim::Const(spans), Dim::Const(width / spans / ranks)];
        let forms = [
            ("parts", ViewForm::Reshape(parts.to_vec())),
            ("turned", ViewForm::Permute(vec![0, 2, 1, 3])),
            ("spans", ViewForm::Reshape(vec![rows, Dim::Const(width)])),
        ];
        let mut made = gathered;
        for (step, form) in forms {
            made = self.r.add(NodeKind::Op(View { form }.into()), &[made], &[format!("{name}.{step}")])?[0];
        }
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
