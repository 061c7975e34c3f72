//! Reductions of sums, of reductions, of squares, and in two steps.

use super::shapes::sum;
use crate::rule::Rule;
use yirage_compile::terms::{Terms, Val};
use yirage_ir::expr::Func;
use yirage_ir::op::{Reduce, ReduceKind, ViewForm};
use yirage_ir::{Dim, Op};

fn reduce(t: &Terms, v: Val) -> Option<(Reduce, Val)> {
    match t.producing_op(v)? {
        (Op::Reduce(reduce), &[x]) => Some((reduce.clone(), x)),
        _ => None,
    }
}

pub(super) const SUMS: Rule = Rule::local(
    "reduce sums",
    "sum(a + b) = sum(a) + sum(b), both ways; -, and means alike",
    sums,
    &[
        "graph g { input %a: f32[M, K] input %b: f32[M, K] %s = map{expr=\"add(x0, x1)\"}(%a, %b): f32[M, K]
           %y = reduce{kind=\"sum\", axes=\"[1]\", keep=true}(%s): f32[M, 1] output %y }",
        "graph g { input %a: f32[M, K] input %b: f32[M, K]
           %p = reduce{kind=\"mean\", axes=\"[0]\", keep=false}(%a): f32[K]
           %q = reduce{kind=\"mean\", axes=\"[0]\", keep=false}(%b): f32[K]
           %y = map{expr=\"sub(x0, x1)\"}(%p, %q): f32[K] output %y }",
    ],
);

fn sums(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    vec![of_sum(t, v), to_sum(t, v)]
}

fn linear(kind: ReduceKind) -> bool {
    matches!(kind, ReduceKind::Sum | ReduceKind::Mean)
}

fn of_sum(t: &mut Terms, v: Val) -> Option<Val> {
    let (op, x) = reduce(t, v).filter(|(op, _)| linear(op.kind))?;
    let (func, p, q) = sum(t, x)?;
    let (p, q) = (t.op(op.clone(), &[p])?, t.op(op, &[q])?);
    t.map2(func, p, q)
}

fn to_sum(t: &mut Terms, v: Val) -> Option<Val> {
    let (func, p, q) = sum(t, v)?;
    let ((op, a), (other, b)) = (reduce(t, p)?, reduce(t, q)?);
    if op != other || !linear(op.kind) || t.shape(a) != t.shape(b) {
        return None;
    }
    let s = t.map2(func, a, b)?;
    t.op(op, &[s])
}

pub(super) const NESTED: Rule = Rule::local(
    "join reductions",
    "a reduction of a reduction of one kind is one along the axes of both, for sums, means, extremes and products",
    nested,
    &["graph g { input %x: f32[B, M, K] %p = reduce{kind=\"sum\", axes=\"[2]\", keep=true}(%x): f32[B, M, 1]
           %y = reduce{kind=\"sum\", axes=\"[0]\", keep=true}(%p): f32[1, M, 1] output %y }"],
);

fn nested(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let join = |t: &mut Terms| {
        let (outer, p) = reduce(t, v)?;
        let (inner, x) = reduce(t, p)?;
        if outer.kind != inner.kind || outer.kind == ReduceKind::MeanSquare || !outer.keep || !inner.keep {
            return None;
        }
        let mut axes = [inner.axes.0, outer.axes.0].concat();
        axes.sort_unstable();
        axes.dedup();
        t.op(Reduce::new(outer.kind, &axes, true), &[x])
    };
    vec![join(t)]
}

pub(super) const MEAN_SQUARE: Rule = Rule::local(
    "mean of squares",
    "mean(x^2) = mean_square(x), both ways; sum(x^2) / n = mean_square(x) where n is how many there are; \
     sum(x) / n = mean(x)",
    mean_square,
    &[
        "graph g { input %x: f32[M, K] %s = map{expr=\"square(x0)\"}(%x): f32[M, K]
           %y = reduce{kind=\"mean\", axes=\"[1]\", keep=true}(%s): f32[M, 1] output %y }",
        "graph g { input %x: f32[M, 5] %s = map{expr=\"square(x0)\"}(%x): f32[M, 5]
           %r = reduce{kind=\"sum\", axes=\"[1]\", keep=true}(%s): f32[M, 1]
           %y = map{expr=\"div(x0, 5.0)\"}(%r): f32[M, 1] output %y }",
        "graph g { input %x: f32[M, 8] %r = reduce{kind=\"sum\", axes=\"[1]\", keep=true}(%x): f32[M, 1]
           %y = map{expr=\"mul(x0, 0.125)\"}(%r): f32[M, 1] output %y }",
        "graph g { input %x: f32[M, K] input %s: f32[M, 1] %p = map{expr=\"mul(x0, x1)\"}(%x, %s): f32[M, K]
           %y = reduce{kind=\"mean_square\", axes=\"[1]\", keep=true}(%p): f32[M, 1] output %y }",
    ],
);

fn mean_square(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    vec![of_squares(t, v), to_squares(t, v), averaged(t, v)]
}

fn of_squares(t: &mut Terms, v: Val) -> Option<Val> {
    let (op, squares) = reduce(t, v).filter(|(op, _)| op.kind == ReduceKind::Mean)?;
    let x = t.unary(squares, Func::Square)?;
    t.op(Reduce { kind: ReduceKind::MeanSquare, ..op }, &[x])
}

fn to_squares(t: &mut Terms, v: Val) -> Option<Val> {
    let (op, x) = reduce(t, v).filter(|(op, _)| op.kind == ReduceKind::MeanSquare)?;
    let squares = t.map(Func::Square, &[x.into()])?;
    t.op(Reduce { kind: ReduceKind::Mean, ..op }, &[squares])
}

fn averaged(t: &mut Terms, v: Val) -> Option<Val> {
    let (r, count) = match (t.func(v, Func::Div), t.func(v, Func::Mul)) {
        (Some(args), _) => (args[0].val()?, f64::from(args[1].float()?)),
        (None, Some(args)) => (args[0].val()?, 1.0 / f64::from(args[1].float()?)),
        (None, None) => return None,
    };
    let (op, x) = reduce(t, r).filter(|(op, _)| op.kind == ReduceKind::Sum)?;
    let sizes = op.axes.0.iter().map(|&axis| t.shape(x)[axis as usize].as_const());
    let elements = sizes.collect::<Option<Vec<usize>>>()?.iter().try_fold(1usize, |n, &s| n.checked_mul(s))?;
    if elements as f64 != count {
        return None;
    }
    match t.unary(x, Func::Square) {
        Some(x) => t.op(Reduce { kind: ReduceKind::MeanSquare, ..op }, &[x]),
        None => t.op(Reduce { kind: ReduceKind::Mean, ..op }, &[x]),
    }
}

/// Fewest elements of a reduction that is split, and of each part.
const SPLIT_FROM: u32 = 4096;
const PART: u32 = 256;

pub(super) const SPLIT: Rule = Rule::local(
    "split reduction",
    "a reduction along 4096 elements of the last dimension, or a multiple of them, is one of parts of 256 each and one \
     of those; sums, means, extremes",
    split,
    &["graph g { input %x: f32[M, 4096] %y = reduce{kind=\"sum\", axes=\"[1]\", keep=true}(%x): f32[M, 1] output %y }"],
);

fn split(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let parts = |t: &mut Terms| {
        let (op, x) = reduce(t, v)?;
        let rank = t.rank(x) as u32;
        let (outer, last) = t.shape(x).split_at(rank.checked_sub(1)? as usize);
        let Dim::Const(n) = last[0] else { return None };
        let kind = !matches!(op.kind, ReduceKind::Prod | ReduceKind::MeanSquare);
        if !kind || op.axes.0 != [rank - 1] || n == 0 || !n.is_multiple_of(SPLIT_FROM) {
            return None;
        }
        let shape = [outer, &[Dim::Const(n / PART), Dim::Const(PART)]].concat();
        let x = t.add_view(ViewForm::Reshape(shape), x)?;
        let first = t.op(Reduce::new(op.kind, &[rank], false), &[x])?;
        t.op(op, &[first])
    };
    vec![parts(t)]
}
