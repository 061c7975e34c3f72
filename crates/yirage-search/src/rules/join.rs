//! Products that share something become one product of joined matrices.

use super::shapes::{size, sum};
use crate::rule::Rule;
use std::collections::HashMap;
use yirage_compile::terms::{Terms, Val};
use yirage_ir::expr::Func;
use yirage_ir::op::{Concat, Contract, Cut, ViewForm};

pub(super) const ALONG_SUM: Rule = Rule::local(
    "join along sum",
    "a b + c d = [a c] [b; d], for matrices of one rank and batch",
    along_sum,
    &["graph g { input %a: f32[B, M, K] input %b: f32[B, K, N] input %c: f32[B, M, 3] input %d: f32[B, 3, N]
           %p = contract(%a, %b): f32[B, M, N] %q = contract(%c, %d): f32[B, M, N]
           %y = map{expr=\"add(x0, x1)\"}(%p, %q): f32[B, M, N] output %y }"],
);

fn along_sum(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let join = |t: &mut Terms| {
        let (func, p, q) = sum(t, v).filter(|(func, ..)| *func == Func::Add)?;
        let ((a, b), (c, d)) = (t.contract(p)?, t.contract(q)?);
        let (left, right) = (t.rank(a).checked_sub(1)?, t.rank(b).checked_sub(2)?);
        debug_assert_eq!(func, Func::Add);
        let left = t.op(Concat { axis: left as u32 }, &[a, c])?;
        let right = t.op(Concat { axis: right as u32 }, &[b, d])?;
        t.op(Contract {}, &[left, right])
    };
    vec![join(t)]
}

pub(super) const SHARED_LEFT: Rule = Rule::joint(
    "join products of one left side",
    "a b and a c are parts of a [b c]",
    |t, order| shared(t, order, true),
    &["graph g { input %a: f32[M, K] input %b: f32[K, N] input %c: f32[K, 3]
           %p = contract(%a, %b): f32[M, N] %q = contract(%a, %c): f32[M, 3] output %p, %q }"],
);

pub(super) const SHARED_RIGHT: Rule = Rule::joint(
    "join products of one right side",
    "a c and b c are parts of [a; b] c",
    |t, order| shared(t, order, false),
    &["graph g { input %a: f32[M, K] input %b: f32[3, K] input %c: f32[K, N]
           %p = contract(%a, %c): f32[M, N] %q = contract(%b, %c): f32[3, N] output %p, %q }"],
);

/// Neighbouring products that share their left (or right) side, two at a time.
fn shared(t: &mut Terms, order: &[u32], left: bool) -> Vec<Vec<(Val, Val)>> {
    let mut last: HashMap<Val, Val> = HashMap::new();
    let mut found = Vec::new();
    for &term in order {
        let v = Val { term, out: 0 };
        let Some((a, b)) = t.contract(v) else { continue };
        if let Some(before) = last.insert(if left { a } else { b }, v) {
            found.push((before, v));
        }
    }
    found.into_iter().filter_map(|(p, q)| joined(t, p, q, left)).collect()
}

fn joined(t: &mut Terms, p: Val, q: Val, left: bool) -> Option<Vec<(Val, Val)>> {
    let ((a, b), (c, d)) = (t.contract(p)?, t.contract(q)?);
    let (one, other) = if left { (b, d) } else { (a, c) };
    // A product that is made of the other one cannot be joined with it. What stands before a product does not read it.
    if other.term > p.term || one.term > q.term {
        return None;
    }
    let from_last = if left { 0 } else { 1 };
    let axis = t.rank(one).checked_sub(from_last + 1)?;
    let both = t.op(Concat { axis: axis as u32 }, &[one, other])?;
    let y = if left { t.op(Contract {}, &[a, both])? } else { t.op(Contract {}, &[both, b])? };
    let (first, second) = (size(t, p, from_last)?, size(t, q, from_last)?);
    let mut part = |start: u32, size: u32| {
        let mut cuts: Vec<Cut> = t.shape(y).iter().map(|&d| Cut::whole(d)).collect();
        let at = cuts.len().checked_sub(from_last + 1)?;
        cuts[at] = Cut { start, step: 1, size: size.into() };
        t.add_view(ViewForm::Slice(cuts), y)
    };
    let (first, second) = (part(0, first)?, part(first, second)?);
    let same = |t: &Terms, old: Val, new: Val| t.ty(old) == t.ty(new);
    (same(t, p, first) && same(t, q, second)).then(|| vec![(p, first), (q, second)])
}
