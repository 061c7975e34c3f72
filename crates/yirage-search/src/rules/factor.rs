//! Sums of products with a common factor become the product of a sum.

use super::shapes::{is, scaled, sum};
use crate::rule::Rule;
use yirage_compile::terms::{Terms, Val};
use yirage_ir::op::Contract;

pub(super) const PRODUCTS: Rule = Rule::local(
    "factor products",
    "a c + b c = (a + b) c and a b + a c = a (b + c), for two matrices of one shape; - alike",
    products,
    &[
        "graph g { input %a: f32[M, K] input %b: f32[M, K] input %c: f32[K, N]
           %p = contract(%a, %c): f32[M, N] %q = contract(%b, %c): f32[M, N]
           %y = map{expr=\"add(x0, x1)\"}(%p, %q): f32[M, N] output %y }",
        "graph g { input %a: f32[M, K] input %b: f32[B, K, N] input %c: f32[B, K, N]
           %p = contract(%a, %b): f32[B, M, N] %q = contract(%a, %c): f32[B, M, N]
           %y = map{expr=\"sub(x0, x1)\"}(%p, %q): f32[B, M, N] output %y }",
    ],
);

fn products(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let Some((func, p, q)) = sum(t, v) else { return Vec::new() };
    let (Some((a, b)), Some((c, d))) = (t.contract(p), t.contract(q)) else { return Vec::new() };
    let mut made = Vec::new();
    if b == d && is(t, a, t.shape(c)) {
        let s = t.map2(func, a, c);
        made.push(s.and_then(|s| t.op(Contract {}, &[s, b])));
    }
    if a == c && is(t, b, t.shape(d)) {
        let s = t.map2(func, b, d);
        made.push(s.and_then(|s| t.op(Contract {}, &[a, s])));
    }
    made
}

pub(super) const ELEMENTS: Rule = Rule::local(
    "factor elements",
    "a * s + b * s = (a + b) * s, element by element; - and / alike",
    elements,
    &["graph g { input %a: f32[M, K] input %b: f32[M, K] input %s: f32[M, 1]
           %y = map{expr=\"add(mul(x0, x2), mul(x1, x2))\"}(%a, %b, %s): f32[M, K] output %y }"],
);

fn elements(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let Some((func, p, q)) = sum(t, v) else { return Vec::new() };
    let mut made = Vec::new();
    for (left, a, s) in scaled(t, p) {
        for (right, b, r) in scaled(t, q) {
            if left == right && s == r {
                let sum = t.map2(func, a, b);
                made.push(sum.and_then(|sum| t.map2(left, sum, s)));
            }
        }
    }
    made
}
