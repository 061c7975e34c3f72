//! Transposes of products.

use super::shapes::exchanged;
use crate::rule::Rule;
use yirage_compile::terms::{Terms, Val};
use yirage_ir::op::{Contract, ViewForm};

pub(super) const PRODUCTS: Rule = Rule::local(
    "transpose product",
    "(a b)^T = b^T a^T, both ways, in each matrix of a batch",
    products,
    &[
        "graph g { input %a: f32[B, M, K] input %b: f32[B, K, N] %p = contract(%a, %b): f32[B, M, N]
           %y = view{form=\"permute(0, 2, 1)\"}(%p): f32[B, N, M] output %y }",
        "graph g { input %a: f32[M, K] input %b: f32[K, N] %s = view{form=\"permute(1, 0)\"}(%a): f32[K, M]
           %r = view{form=\"permute(1, 0)\"}(%b): f32[N, K] %y = contract(%r, %s): f32[N, M] output %y }",
    ],
);

fn products(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    vec![out_of(t, v), into(t, v)]
}

/// Whether a value is another one with the last two dimensions exchanged, and which.
fn transposed(t: &Terms, v: Val) -> Option<Val> {
    let (form, x) = t.view(v)?;
    (Some(form) == exchanged(t.rank(v)).as_ref()).then_some(x)
}

fn into(t: &mut Terms, v: Val) -> Option<Val> {
    let (a, b) = t.contract(transposed(t, v)?)?;
    let (a, b) = (flipped(t, a)?, flipped(t, b)?);
    t.op(Contract {}, &[b, a])
}

fn out_of(t: &mut Terms, v: Val) -> Option<Val> {
    let (a, b) = t.contract(v)?;
    let (a, b) = (transposed(t, a)?, transposed(t, b)?);
    let y = t.op(Contract {}, &[b, a])?;
    flipped(t, y)
}

/// The transpose; of a transpose what it is of.
fn flipped(t: &mut Terms, v: Val) -> Option<Val> {
    if let Some(x) = transposed(t, v) {
        return Some(x);
    }
    let form: ViewForm = exchanged(t.rank(v))?;
    t.add_view(form, v)
}
