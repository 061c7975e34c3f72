//! Scales commute with products and sums: a factor that is the same along the dimension that is summed over can be
//! multiplied before or after. So a normalisation goes behind the product that reads it, and a softmax divides by its
//! sum after the product with the values.

use super::shapes::{constant_along, is, scaled};
use crate::rule::Rule;
use yirage_compile::terms::{MapArg, Terms, Val};
use yirage_ir::Op;
use yirage_ir::expr::Func;
use yirage_ir::op::{Contract, Reduce, ReduceKind};

pub(super) const PAST_PRODUCT: Rule = Rule::local(
    "scale past product",
    "(a * s) b = (a b) * s where s is one number a row of a; a (b * s) = (a b) * s where s is one a column of b; \
     / and unary minus alike",
    past_product,
    &[
        "graph g { input %a: f32[M, K] input %s: f32[M, 1] input %b: f32[K, N]
           %p = map{expr=\"mul(x0, x1)\"}(%a, %s): f32[M, K] %y = contract(%p, %b): f32[M, N] output %y }",
        "graph g { input %a: f32[B, M, K] input %s: f32[B, M, 1] input %b: f32[B, K, N]
           %p = map{expr=\"div(x0, add(square(x1), 1.0))\"}(%a, %s): f32[B, M, K] %y = contract(%p, %b): f32[B, M, N]
           output %y }",
        "graph g { input %a: f32[M, K] input %s: f32[N] input %b: f32[K, N]
           %p = map{expr=\"mul(x0, x1)\"}(%b, %s): f32[K, N] %y = contract(%a, %p): f32[M, N] output %y }",
        "graph g { input %a: f32[M, K] input %b: f32[B, K, N]
           %p = map{expr=\"neg(x0)\"}(%a): f32[M, K] %y = contract(%p, %b): f32[B, M, N] output %y }",
    ],
);

fn past_product(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let Some((a, b)) = t.contract(v) else { return Vec::new() };
    let mut made = Vec::new();
    for (func, p, s) in scaled(t, a) {
        if constant_along(t, s, 0) {
            let y = t.op(Contract {}, &[p, b]);
            made.push(y.and_then(|y| t.map2(func, y, s)));
        }
    }
    for (func, p, s) in scaled(t, b) {
        if constant_along(t, s, 1) {
            let y = t.op(Contract {}, &[a, p]);
            made.push(y.and_then(|y| t.map2(func, y, s)));
        }
    }
    let sides = [(t.unary(a, Func::Neg), Some(b)), (Some(a), t.unary(b, Func::Neg))];
    for (a, b) in sides.into_iter().filter_map(|(a, b)| Some((a?, b?))) {
        let y = t.op(Contract {}, &[a, b]);
        made.push(y.and_then(|y| t.map(Func::Neg, &[y.into()])));
    }
    made
}

pub(super) const INTO_PRODUCT: Rule = Rule::local(
    "scale into product",
    "(a b) * s = (a * s) b where s is one number a row; = a (b * s) where it is one a column; / alike",
    into_product,
    &[
        "graph g { input %a: f32[M, K] input %s: f32[M, 1] input %b: f32[K, N]
           %p = contract(%a, %b): f32[M, N] %y = map{expr=\"mul(x0, x1)\"}(%p, %s): f32[M, N] output %y }",
        "graph g { input %a: f32[M, K] input %s: f32[N] input %b: f32[K, N]
           %p = contract(%a, %b): f32[M, N] %y = map{expr=\"mul(x0, x1)\"}(%p, %s): f32[M, N] output %y }",
    ],
);

fn into_product(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let mut made = Vec::new();
    for (func, p, s) in scaled(t, v) {
        let Some((a, b)) = t.contract(p) else { continue };
        if constant_along(t, s, 0) {
            let scaled = t.map2(func, a, s).filter(|&y| is(t, y, t.shape(a)));
            made.push(scaled.and_then(|a| t.op(Contract {}, &[a, b])));
        }
        if constant_along(t, s, 1) {
            let scaled = t.map2(func, b, s).filter(|&y| is(t, y, t.shape(b)));
            made.push(scaled.and_then(|b| t.op(Contract {}, &[a, b])));
        }
    }
    made
}

pub(super) const PAST_SUM: Rule = Rule::local(
    "scale past sum",
    "sum(x * s) = sum(x) * s where s is the same along the axes; / alike, and means",
    past_sum,
    &[
        "graph g { input %x: f32[M, K] input %s: f32[M, 1]
           %p = map{expr=\"mul(x0, x1)\"}(%x, %s): f32[M, K]
           %y = reduce{kind=\"sum\", axes=\"[1]\", keep=true}(%p): f32[M, 1] output %y }",
        "graph g { input %x: f32[B, M, K] input %s: f32[K]
           %p = map{expr=\"div(x0, add(square(x1), 1.0))\"}(%x, %s): f32[B, M, K]
           %y = reduce{kind=\"mean\", axes=\"[0, 1]\", keep=true}(%p): f32[1, 1, K] output %y }",
    ],
);

fn past_sum(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let Some((Op::Reduce(reduce), &[x])) = t.producing_op(v) else { return Vec::new() };
    let reduce: Reduce = reduce.clone();
    if !reduce.keep || !matches!(reduce.kind, ReduceKind::Sum | ReduceKind::Mean) {
        return Vec::new();
    }
    let rank = t.rank(x);
    let same = |t: &Terms, s: MapArg| reduce.axes.0.iter().all(|&axis| constant_along(t, s, rank - 1 - axis as usize));
    let mut made = Vec::new();
    for (func, p, s) in scaled(t, x) {
        if same(t, s) {
            let sum = t.op(reduce.clone(), &[p]);
            made.push(sum.and_then(|sum| t.map2(func, sum, s)));
        }
    }
    made
}
