//! Chains of products in another order.

use crate::rule::Rule;
use yirage_compile::terms::{Terms, Val};
use yirage_ir::op::Contract;

pub(super) const PRODUCTS: Rule = Rule::local(
    "reassociate",
    "(a b) c = a (b c), both ways",
    products,
    &[
        "graph g { input %a: f32[M, K] input %b: f32[K, N] input %c: f32[N, M]
           %p = contract(%a, %b): f32[M, N] %y = contract(%p, %c): f32[M, M] output %y }",
        "graph g { input %a: f32[B, M, K] input %b: f32[K, N] input %c: f32[N, M]
           %p = contract(%b, %c): f32[K, M] %y = contract(%a, %p): f32[B, M, M] output %y }",
    ],
);

fn products(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let Some((left, right)) = t.contract(v) else { return Vec::new() };
    let mut made = Vec::new();
    if let Some((a, b)) = t.contract(left) {
        let p = t.op(Contract {}, &[b, right]);
        made.push(p.and_then(|p| t.op(Contract {}, &[a, p])));
    }
    if let Some((b, c)) = t.contract(right) {
        let p = t.op(Contract {}, &[left, b]);
        made.push(p.and_then(|p| t.op(Contract {}, &[p, c])));
    }
    made
}
