//! Scales of one value trade places and become one.

use super::shapes::{is, scaled};
use crate::rule::Rule;
use yirage_compile::terms::{MapArg, Terms, Val};
use yirage_ir::expr::Func;

pub(super) const SCALES: Rule = Rule::local(
    "combine scales",
    "(x * r) * s = (x * s) * r; = x * (r * s) where r and s together are smaller than x; / alike",
    scales,
    &[
        "graph g { input %x: f32[M, K] input %r: f32[M, 1] input %s: f32[K]
           %y = map{expr=\"mul(mul(x0, x1), x2)\"}(%x, %r, %s): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] input %r: f32[K] input %s: f32[K]
           %y = map{expr=\"div(mul(x0, x1), add(square(x2), 1.0))\"}(%x, %r, %s): f32[M, K] output %y }",
    ],
);

fn scales(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let mut made = Vec::new();
    for (outer, p, s) in scaled(t, v) {
        for (inner, x, r) in scaled(t, p) {
            let swapped = t.map2(outer, x, s).filter(|&y| is(t, y, t.shape(p)));
            made.push(swapped.and_then(|y| t.map2(inner, y, r)));
            let smaller = |t: &Terms, arg: MapArg| arg.val().is_none_or(|v| !is(t, v, t.shape(x)));
            if !smaller(t, r) || !smaller(t, s) {
                continue;
            }
            // x / r * s stays two functions: the quotient of scales is one more rounding and no less work.
            let joined = match (inner, outer) {
                (Func::Mul, Func::Mul) => t.map2(Func::Mul, r, s).map(|j| (Func::Mul, j)),
                (Func::Div, Func::Div) => t.map2(Func::Mul, r, s).map(|j| (Func::Div, j)),
                (Func::Mul, Func::Div) => t.map2(Func::Div, r, s).map(|j| (Func::Mul, j)),
                _ => None,
            };
            let joined = joined.filter(|&(_, j)| !is(t, j, t.shape(x)));
            made.push(joined.and_then(|(func, j)| t.map2(func, x, j)));
        }
    }
    made
}
