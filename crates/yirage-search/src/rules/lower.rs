//! Named ops are taken apart, so that other rules can look inside.

use crate::rule::Rule;
use yirage_compile::terms::{Terms, Val, inline};
use yirage_ir::{Op, Type};

pub(super) const NAMED: Rule = Rule::local(
    "lower",
    "a norm, a softmax or a product with a weight is what its general form computes",
    named,
    &[
        "graph g { input %x: f32[M, K] input %w: f32[K]
           %y = rms_norm{eps=1e-5, width=K, unit_offset=false}(%x, %w): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] %y = softmax(%x): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] weight %w: f32[N, K] %y = linear{groups=1}(%x, %w): f32[M, N] output %y }",
    ],
);

fn named(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let general = |t: &mut Terms| {
        let (op, args) = t.producing_op(v)?;
        if !matches!(op, Op::RmsNorm(_) | Op::LayerNorm(_) | Op::Softmax(_) | Op::Linear(_) | Op::MatMul(_)) {
            return None;
        }
        let (op, args) = (op.clone(), args.to_vec());
        let types: Vec<Type> = args.iter().map(|&a| t.ty(a).dense()).collect();
        let form = op.lower(&types).ok()?;
        inline(&form, &args, t)?.first().copied()
    };
    vec![general(t)]
}
