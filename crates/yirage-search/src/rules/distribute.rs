//! A product of a sum becomes the sum of products.

use super::shapes::sum;
use crate::rule::Rule;
use yirage_compile::terms::{Terms, Val};
use yirage_ir::op::Contract;

pub(super) const PRODUCTS: Rule = Rule::local(
    "distribute",
    "(a + b) c = a c + b c and a (b + c) = a b + a c, for two matrices of one shape; - alike",
    products,
    &[
        "graph g { input %a: f32[M, K] input %b: f32[M, K] input %c: f32[K, N]
           %s = map{expr=\"add(x0, x1)\"}(%a, %b): f32[M, K] %y = contract(%s, %c): f32[M, N] output %y }",
        "graph g { input %a: f32[B, M, K] input %b: f32[K, N] input %c: f32[K, N]
           %s = map{expr=\"sub(x0, x1)\"}(%b, %c): f32[K, N] %y = contract(%a, %s): f32[B, M, N] output %y }",
    ],
);

fn products(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let Some((a, b)) = t.contract(v) else { return Vec::new() };
    let mut made = Vec::new();
    if let Some((func, p, q)) = sum(t, a) {
        let sides = (t.op(Contract {}, &[p, b]), t.op(Contract {}, &[q, b]));
        made.push(if let (Some(p), Some(q)) = sides { t.map2(func, p, q) } else { None });
    }
    if let Some((func, p, q)) = sum(t, b) {
        let sides = (t.op(Contract {}, &[a, p]), t.op(Contract {}, &[a, q]));
        made.push(if let (Some(p), Some(q)) = sides { t.map2(func, p, q) } else { None });
    }
    made
}
