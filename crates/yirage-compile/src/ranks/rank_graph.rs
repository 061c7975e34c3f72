//! The graph of a rank: nodes on its parts of values, and collectives where something reads the whole of one.

use super::division::{RankShare, RankShares};
use crate::error::CompileError;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::attr::List;
use yirage_ir::expr::Func;
use yirage_ir::op::{AllGather, AllReduce, Embed, Iota, Map, NO_EXPERT, ReduceScatter, View, ViewForm};
use yirage_ir::{DType, Dim, Expr, Graph, NodeKind, Op, ValueId};

/// A rank's graph while it is made.
pub(super) struct RankGraph<'a> {
    r: Rebuild<'a>,
    shares: &'a RankShares<'a>,
    /// Divided values as wholes, by their old names.
    gathered: HashMap<ValueId, ValueId>,
    /// Choices of experts as this rank numbers its own, by the old ones and how many a rank has.
    own_choices: HashMap<(ValueId, u32), ValueId>,
    /// This rank's number times the number of ranks.
    rank: Option<ValueId>,
}

impl<'a> RankGraph<'a> {
    /// What a rank computes of a graph that is shared so.
    pub(super) fn of(graph: &'a Graph, shares: &'a RankShares<'a>) -> Result<Graph, CompileError> {
        let r = Rebuild::retyped(graph, |id| shares.rank_type(id))?;
        let (gathered, own_choices) = (HashMap::new(), HashMap::new());
        let mut made = RankGraph { r, shares, gathered, own_choices, rank: None };
        for n in 0..graph.nodes.len() {
            made.copy(n)?;
        }
        made.finish()
    }

    fn copy(&mut self, n: usize) -> Result<(), CompileError> {
        let (node, share) = (&self.r.old.nodes[n], self.shares.node(n));
        let ranks = self.shares.ranks;
        if let (NodeKind::Op(Op::Embed(op)), Some(_), &[table, ids], &[out]) =
            (&node.kind, share, &node.ins[..], &node.outs[..])
        {
            return self.embed(op, table, ids, out);
        }
        let mut ins = Vec::with_capacity(node.ins.len());
        for (at, &id) in node.ins.iter().enumerate() {
            ins.push(self.operand(&node.kind, share, at, id)?);
        }
        if let (Some(RankShare::Own { chosen }), &[_, weight, at]) = (share, &node.ins[..])
            && at == chosen
        {
            ins[2] = self.own_choice(chosen, weight)?;
        }
        let mut kind = node.kind.clone();
        match &mut kind {
            NodeKind::Op(Op::Linear(op)) if share.is_some() && op.groups > 1 => op.groups /= ranks,
            NodeKind::Op(Op::ConcatHeads(op)) if share.is_some() => op.groups /= ranks,
            NodeKind::Op(Op::KvAppend(op)) if share.is_some() => op.kv_heads /= ranks,
            NodeKind::Op(Op::Attention(op)) if share.is_some() => {
                let one = op.kv_heads == 1;
                (op.heads, op.kv_heads) = (op.heads / ranks, if one { 1 } else { op.kv_heads / ranks });
            }
            _ => {}
        }
        Ok(self.r.copy_as(n, kind, &ins)?)
    }

    /// What a rank's node reads of an operand. Matmuls of parts read whole rows, but for groups and experts that have rows of
    /// their own; all else of parts reads parts.
    fn operand(
        &mut self,
        kind: &NodeKind,
        share: Option<RankShare>,
        at: usize,
        id: ValueId,
    ) -> Result<ValueId, CompileError> {
        let reads_whole = match kind {
            _ if share.is_none() => true,
            NodeKind::Op(Op::Linear(op)) => op.groups == 1,
            NodeKind::Op(Op::ExpertLinear(op)) => {
                at != 0
                    || op.shared
                    || self.shares.value(id) != share
                    || matches!(share, Some(RankShare::Columns { .. }))
            }
            _ => false,
        };
        if reads_whole { self.whole(id) } else { Ok(self.r.get(id)) }
    }

    /// Rows of a table of embeddings, of which this rank has some.
    fn embed(&mut self, op: &Embed, table: ValueId, ids: ValueId, out: ValueId) -> Result<(), CompileError> {
        let (own, all) = (self.shares.rank_type(table), self.r.old.ty(table));
        let (&[Dim::Const(own), _], &[Dim::Const(all), _]) = (&own.shape[..], &all.shape[..]) else {
            return Err(unfit(self.r.old, table));
        };
        let name = self.r.old.value(out).name.clone();
        let (chosen, rank, tokens) = (self.whole(ids)?, self.rank()?, self.r.old.ty(ids).shape[0]);
        let column = ViewForm::Reshape(vec![tokens, Dim::Const(1)]);
        let column = self.add(View { form: column }, &[chosen], format!("{name}.ids"))?;
        let place = OwnNumbers { ranks: self.shares.ranks, own, all };
        let at = self.add(Map { expr: place.nearest() }, &[column, rank], format!("{name}.places"))?;
        let at = self.add(View { form: ViewForm::Reshape(vec![tokens]) }, &[at], format!("{name}.own"))?;
        let table = self.r.get(table);
        let rows = self.add(op.clone(), &[table, at], format!("{name}.rows"))?;
        let expr = place.choose(Expr::input(2), Expr::constant(0.0f32), Expr::constant(f32::NAN));
        let made = self.add(Map { expr }, &[column, rank, rows], name)?;
        self.r.bind(out, made);
        Ok(())
    }

    /// A choice of experts as this rank numbers its own; others are none.
    fn own_choice(&mut self, chosen: ValueId, weight: ValueId) -> Result<ValueId, CompileError> {
        let (own, all) = (self.shares.rank_type(weight).shape[0], self.r.old.ty(weight).shape[0]);
        let (Dim::Const(own), Dim::Const(all)) = (own, all) else { return Err(unfit(self.r.old, weight)) };
        if let Some(&known) = self.own_choices.get(&(chosen, own)) {
            return Ok(known);
        }
        let (numbers, rank) = (self.whole(chosen)?, self.rank()?);
        let place = OwnNumbers { ranks: self.shares.ranks, own, all };
        let expr = place.choose(place.at(), Expr::constant(NO_EXPERT), Expr::constant(i32::MAX));
        let name = format!("{}.own.{own}", self.r.old.value(chosen).name);
        let made = self.add(Map { expr }, &[numbers, rank], name)?;
        self.own_choices.insert((chosen, own), made);
        Ok(made)
    }

    /// This rank's number times the number of ranks: each gets its column of what all give. The plan is the same on all of them.
    fn rank(&mut self) -> Result<ValueId, CompileError> {
        if let Some(known) = self.rank {
            return Ok(known);
        }
        let ranks = self.shares.ranks;
        let numbers = self.add(Iota { shape: List(vec![1, ranks]), axis: 1 }, &[], "rank.numbers".into())?;
        let numbers = self.add(Map { expr: Expr::input(0).cast(DType::F32) }, &[numbers], "rank.floats".into())?;
        let rank = self.add(ReduceScatter { ranks }, &[numbers], "rank.own".into())?;
        self.rank = Some(rank);
        Ok(rank)
    }

    fn add(&mut self, op: impl Into<Op>, ins: &[ValueId], name: String) -> Result<ValueId, CompileError> {
        Ok(self.r.add(NodeKind::Op(op.into()), ins, &[name])?[0])
    }

    /// All of a value.
    fn whole(&mut self, old: ValueId) -> Result<ValueId, CompileError> {
        let part = self.r.get(old);
        let Some(share) = self.shares.value(old) else { return Ok(part) };
        if let Some(&known) = self.gathered.get(&old) {
            return Ok(known);
        }
        let (ranks, name) = (self.shares.ranks, format!("{}.gathered", self.r.old.value(old).name));
        let made = match share {
            RankShare::Columns { spans } => {
                let made = self.add(AllGather { ranks }, &[part], name.clone())?;
                if spans > 1 { self.interleaved(made, old, spans, &name)? } else { made }
            }
            // One rank has a result and the others have 0.
            RankShare::Own { .. } => self.add(AllReduce { ranks }, &[part], name)?,
        };
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
        let (ty, ranks) = (self.r.old.ty(old), self.shares.ranks);
        let (rows, width) = (ty.shape[0], ty.width().unwrap_or(0) as u32);
        let parts = [rows, Dim::Const(ranks), Dim::Const(spans), Dim::Const(width / spans / ranks)];
        let forms = [
            ("parts", ViewForm::Reshape(parts.to_vec())),
            ("turned", ViewForm::Permute(vec![0, 2, 1, 3])),
            ("spans", ViewForm::Reshape(vec![rows, Dim::Const(width)])),
        ];
        let mut made = gathered;
        for (step, form) in forms {
            made = self.add(View { form }, &[made], format!("{name}.{step}"))?;
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

/// Numbers of experts or tokens, of which each rank has as many as the others, one part after the other: expressions of a number
/// (input 0) and the rank's own number times that of ranks (input 1).
#[derive(Clone, Copy)]
struct OwnNumbers {
    ranks: u32,
    own: u32,
    all: u32,
}

impl OwnNumbers {
    /// Where the number stands among the rank's own, if it is one of them.
    fn at(self) -> Expr {
        // Whole numbers of f32, whose quotient is exact.
        let rank = Expr::call(Func::Div, &[Expr::input(1), Expr::constant(self.ranks as f32)]).cast(DType::I32);
        let first = Expr::call(Func::Mul, &[rank, Expr::constant(self.own as i32)]);
        Expr::call(Func::Sub, &[Expr::input(0), first])
    }

    /// The nearest of the rank's own.
    fn nearest(self) -> Expr {
        nearest(self.at(), self.own)
    }

    /// `own` for the rank's own numbers, `others` for those of other ranks, and `neither` for what is no number of all.
    fn choose(self, own: Expr, others: Expr, neither: Expr) -> Expr {
        let is_one = Expr::call(Func::Equal, &[Expr::input(0), nearest(Expr::input(0), self.all)]);
        let not_own = Expr::call(Func::Select, &[is_one, others, neither]);
        let is_own = Expr::call(Func::Equal, &[self.at(), self.nearest()]);
        Expr::call(Func::Select, &[is_own, own, not_own])
    }
}

/// The nearest number from 0 on, below a limit.
fn nearest(number: Expr, limit: u32) -> Expr {
    Expr::call(Func::Clamp, &[number, Expr::constant(0), Expr::constant(limit as i32 - 1)])
}

/// A weight that is no stack of rows: `RankShares` divides none.
fn unfit(graph: &Graph, weight: ValueId) -> CompileError {
    let (name, ty) = (graph.value(weight).name.clone(), graph.ty(weight));
    CompileError::Unsupported {
        what: format!("the weight `{name}` of {ty} on several ranks"),
        why: "expected fixed sizes to divide".into(),
    }
}
