//! What of a graph is divided among ranks: weights, caches, and the values that each rank computes its part of.

use crate::decision::{Decision, Decisions};
use std::collections::{HashMap, HashSet};
use yirage_ir::expr::Scalar;
use yirage_ir::op::Map;
use yirage_ir::{Dim, Graph, NodeKind, Op, Type, ValueId, ValueSource};
use yirage_plan::{ExpertDivision, Target};

/// What a rank has of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RankShare {
    /// Its part of the columns, of so many equal spans of a row each: those of a row, or of the results of a token's experts.
    Columns { spans: u32 },
    /// What comes of the experts or tokens that are its own of these chosen ones, and 0 in place of what does of others'.
    Own { chosen: ValueId },
}

/// What is divided among the ranks.
pub(super) struct RankShares<'a> {
    graph: &'a Graph,
    pub(super) ranks: u32,
    /// The dimension along which each weight is divided.
    weights: HashMap<ValueId, u32>,
    caches: HashSet<ValueId>,
    values: HashMap<ValueId, RankShare>,
    /// What a rank has of the results of each node; none where it computes all of them.
    nodes: Vec<Option<RankShare>>,
}

impl<'a> RankShares<'a> {
    /// How the ranks of a target's group share a graph.
    pub(super) fn of(graph: &'a Graph, target: &Target) -> RankShares<'a> {
        let ranks = target.ranks;
        let axis = |id| Some((id, axis_of(graph, id, ranks, target.experts)?));
        let weights = graph.inputs_of(ValueSource::Weight).filter_map(axis).collect();
        let caches = graph.inputs_of(ValueSource::KvCache).filter(|&id| heads(graph.ty(id)).is_multiple_of(ranks));
        let caches = caches.collect();
        let mut shares = RankShares { graph, ranks, weights, caches, values: HashMap::new(), nodes: Vec::new() };
        // What some node needs whole is not divided, and what follows is looked at again.
        while !shares.follow() {}
        shares
    }

    /// The divided weights, and along which of their dimensions.
    pub(super) fn into_weights(self) -> HashMap<ValueId, u32> {
        self.weights
    }

    /// What a rank has of a value; none where it has all of it.
    pub(super) fn value(&self, id: ValueId) -> Option<RankShare> {
        self.values.get(&id).copied()
    }

    /// What a rank has of the results of a node; none where it computes all of them.
    pub(super) fn node(&self, n: usize) -> Option<RankShare> {
        self.nodes[n]
    }

    /// Finds what is divided. False where a cache or a weight turned out to be needed whole.
    fn follow(&mut self) -> bool {
        (self.values, self.nodes) = (HashMap::new(), Vec::new());
        for n in 0..self.graph.nodes.len() {
            let node = &self.graph.nodes[n];
            let share = match &node.kind {
                NodeKind::Op(op) => self.share_of(op, &node.ins),
                NodeKind::Region(_) => None,
            };
            if share.is_none() {
                let caches = node.ins.iter().filter_map(|&id| self.graph.kv_cache_of(id));
                if let Some(cache) = caches.into_iter().find(|id| self.caches.contains(id)) {
                    self.caches.remove(&cache);
                    return false;
                }
                if let Some(weight) = node.ins.iter().find(|id| self.weights.contains_key(id)) {
                    self.weights.remove(weight);
                    return false;
                }
            }
            if let Some(share) = share {
                let outs = node.outs.iter().filter(|&&id| self.graph.kv_cache_of(id).is_none());
                self.values.extend(outs.map(|&id| (id, share)));
            }
            self.nodes.push(share);
        }
        true
    }

    /// What a rank computes of a node's results from its parts of what the node reads, if it can.
    fn share_of(&self, op: &Op, ins: &[ValueId]) -> Option<RankShare> {
        match op {
            Op::ExpertLinear(_) if self.has_whole_experts(ins[1]) => Some(RankShare::Own { chosen: ins[2] }),
            Op::ExpertLinear(op) => {
                self.weights.contains_key(&ins[1]).then_some(RankShare::Columns { spans: op.top_k })
            }
            Op::ExpertBias(_) => {
                let own = RankShare::Own { chosen: ins[2] };
                (self.value(ins[0]) == Some(own) && self.has_whole_experts(ins[1])).then_some(own)
            }
            Op::Embed(_) => self.weights.contains_key(&ins[0]).then_some(RankShare::Own { chosen: ins[1] }),
            Op::Map(op) => self.share_of_map(op, ins),
            _ => self.has_columns(op, ins).then_some(RankShare::Columns { spans: 1 }),
        }
    }

    /// Of a map, what it reads of all its inputs: of own experts or tokens if it makes 0 of what others have.
    fn share_of_map(&self, op: &Map, ins: &[ValueId]) -> Option<RankShare> {
        let share = self.value(*ins.first()?)?;
        let zeros = vec![Scalar::from(0.0f32); ins.len()];
        let keeps = matches!(share, RankShare::Columns { .. }) || op.expr.eval(&zeros) == Scalar::from(0.0f32);
        (keeps && ins.iter().all(|&id| self.value(id) == Some(share))).then_some(share)
    }

    /// Whether a weight is one of experts, of which each rank has whole ones.
    fn has_whole_experts(&self, weight: ValueId) -> bool {
        self.weights.get(&weight) == Some(&EXPERT_AXIS) && is_of_experts(self.graph, weight)
    }

    /// Whether a rank can compute its columns of an op's result.
    fn has_columns(&self, op: &Op, ins: &[ValueId]) -> bool {
        let spans = |at: usize| match ins.get(at).and_then(|&id| self.value(id)) {
            Some(RankShare::Columns { spans }) => Some(spans),
            _ => None,
        };
        let columns = |at: usize| spans(at) == Some(1);
        let width = |at: usize| self.graph.ty(ins[at]).width().unwrap_or(0) as u32 / self.ranks;
        let cache = |at: usize| self.graph.kv_cache_of(ins[at]).is_some_and(|id| self.caches.contains(&id));
        let by = |heads: u32| heads.is_multiple_of(self.ranks);
        let whole_heads = |of: u32| columns(0) && of > 0 && width(0).is_multiple_of(of);
        match op {
            Op::Linear(op) => self.weights.contains_key(&ins[1]) && (op.groups == 1 || columns(0)),
            Op::ExpertSum(op) => spans(0) == Some(op.top_k) && self.value(ins[1]).is_none(),
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
        }
    }

    /// The type of an input as a rank has it.
    pub(super) fn rank_type(&self, id: ValueId) -> Type {
        let mut ty = self.graph.ty(id).clone();
        let axis = match (self.weights.get(&id), self.caches.contains(&id)) {
            (Some(&axis), _) => axis as usize,
            (None, true) => 1,
            (None, false) => return ty,
        };
        if let Dim::Const(n) = &mut ty.shape[axis] {
            *n /= self.ranks;
        }
        ty
    }

    /// Says what is divided, and what could be but is not.
    pub(super) fn tell(&self, decisions: &mut Decisions) {
        let ranks = self.ranks;
        for id in self.graph.inputs_of(ValueSource::Weight).chain(self.graph.inputs_of(ValueSource::KvCache)) {
            let (name, ty) = (vec![self.graph.value(id).name.clone()], self.graph.ty(id));
            let what = format!("a part for each of {ranks} ranks");
            if self.weights.contains_key(&id) || self.caches.contains(&id) {
                decisions.tell(|| Decision::done(name, what, format!("{ty} becomes {}", self.rank_type(id))));
            } else if self.graph.value(id).source == ValueSource::KvCache || is_matmul_weight(self.graph, id) {
                let why = format!("{ty} does not divide by heads, rows or experts, or something reads all of it");
                decisions.tell(|| Decision::refused(name, what, why));
            }
        }
    }
}

/// The dimension of a weight that has its experts.
const EXPERT_AXIS: u32 = 0;

fn heads(cache: &Type) -> u32 {
    cache.shape.get(1).and_then(|dim| dim.as_const()).unwrap_or(1) as u32
}

/// The dimension of a weight's rows: behind it come the elements of a row, before it experts.
fn row_axis(weight: &Type) -> u32 {
    weight.shape.len().saturating_sub(2) as u32
}

/// Whether matmuls alone read a weight, or it is a table of embeddings as well.
fn is_matmul_weight(graph: &Graph, id: ValueId) -> bool {
    groups_of(graph, id).is_some() && !graph.outputs.contains(&id)
}

/// Whether all that reads a weight takes those of chosen experts.
fn is_of_experts(graph: &Graph, id: ValueId) -> bool {
    let mut reads = graph.nodes.iter().filter(|node| node.ins.contains(&id)).peekable();
    let by_experts = |node: &yirage_ir::Node| matches!(&node.kind, NodeKind::Op(Op::ExpertLinear(_) | Op::ExpertBias(_)) if node.ins[1] == id);
    reads.peek().is_some() && reads.all(by_experts) && !graph.outputs.contains(&id)
}

/// As how many matrices one below the other matmuls read a weight, if they alone read it and all alike. Experts lie along a
/// dimension of their own. A table of embeddings is one matrix.
fn groups_of(graph: &Graph, id: ValueId) -> Option<u32> {
    let reads = graph.nodes.iter().filter(|node| node.ins.contains(&id));
    let mut groups = reads.map(|node| match &node.kind {
        NodeKind::Op(Op::Linear(op)) if node.ins[0] != id => Some(op.groups),
        NodeKind::Op(Op::ExpertLinear(_)) if node.ins[0] != id => Some(1),
        NodeKind::Op(Op::Embed(_)) => Some(1),
        _ => None,
    });
    let first = groups.next()??;
    groups.all(|other| other == Some(first)).then_some(first)
}

/// The dimension along which so many ranks can share a weight.
fn axis_of(graph: &Graph, id: ValueId, ranks: u32, experts: ExpertDivision) -> Option<u32> {
    let ty = graph.ty(id);
    let by = |axis: u32| ty.shape[axis as usize].as_const().is_some_and(|n| (n as u32).is_multiple_of(ranks));
    if !matches!(ty.shape.len(), 2 | 3) || ty.strides.is_some() {
        return None;
    }
    if experts == ExpertDivision::Whole && is_of_experts(graph, id) {
        return by(EXPERT_AXIS).then_some(EXPERT_AXIS);
    }
    let axis = row_axis(ty);
    let groups = groups_of(graph, id)?;
    (by(axis) && is_matmul_weight(graph, id) && (groups == 1 || groups.is_multiple_of(ranks))).then_some(axis)
}
