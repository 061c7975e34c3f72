//! Attention without a cache as general ops.

use super::Attention;
use crate::dim::Dim;
use crate::graph::{Graph, ValueId};
use crate::op::lower::{Lowering, NoGeneralForm};
use crate::op::{OpDef, ReduceKind};
use crate::types::Type;

pub(super) fn lower(op: &Attention, ins: &[Type], tokens: u32) -> Result<Graph, NoGeneralForm> {
    let (mut l, x) = Lowering::new(Attention::NAME, ins)?;
    let (group, c) = (op.heads / op.kv_heads, |n: u32| Dim::Const(n));
    // [kv_heads, group, tokens, width], and keys with their tokens innermost.
    let q = l.reshape(x[0], &[c(tokens), c(op.kv_heads), c(group), c(op.k_width)])?;
    let q = l.permute(q, &[1, 2, 0, 3])?;
    let k = l.reshape(x[1], &[c(tokens), c(op.kv_heads), c(1), c(op.k_width)])?;
    let k = l.permute(k, &[1, 2, 3, 0])?;
    let v = l.reshape(x[2], &[c(tokens), c(op.kv_heads), c(1), c(op.v_width)])?;
    let v = l.permute(v, &[1, 2, 0, 3])?;
    let dots = l.contract(q, k)?;
    let scores = scores(&mut l, op, dots, x[3], x[4], tokens)?;
    let sinks = x.get(5).map(|&s| l.reshape(s, &[c(op.kv_heads), c(group), c(1), c(1)])).transpose()?;
    let weights = softmax(&mut l, scores, sinks)?;
    let y = l.contract(weights, v)?;
    let y = l.permute(y, &[2, 0, 1, 3])?;
    let y = l.reshape(y, &[c(tokens), c(op.heads * op.v_width)])?;
    l.finish(y)
}

/// Scaled and capped; what a token does not see is minus infinity.
fn scores(
    l: &mut Lowering,
    op: &Attention,
    dots: ValueId,
    positions: ValueId,
    seqs: ValueId,
    tokens: u32,
) -> Result<ValueId, NoGeneralForm> {
    let mut score = format!("mul(x0, {})", op.scale);
    if op.softcap.0 > 0.0 {
        score = format!("mul(tanh(div({score}, {c})), {c})", c = op.softcap);
    }
    let first = match i32::try_from(op.window) {
        Ok(window) if window > 0 => format!("sub(x1, {}i)", window - 1),
        _ => "0i".to_string(),
    };
    let mut seen = format!("select(le({first}, x2), {score}, -inf)");
    match i32::try_from(op.window) {
        _ if op.causal => seen = format!("select(le(x2, x1), {seen}, -inf)"),
        Ok(window) if window > 0 => seen = format!("select(le(sub(x2, x1), {}i), {seen}, -inf)", window - 1),
        _ => {}
    }
    let seen = format!("select(eq(x3, x4), {seen}, -inf)");
    let column = [Dim::Const(tokens), Dim::Const(1)];
    let (own, own_seq) = (l.reshape(positions, &column)?, l.reshape(seqs, &column)?);
    // Without a mask by positions the expression still reads them both.
    let seen = if seen.contains("x1") { seen } else { format!("select(eq(x1, x1), {seen}, -inf)") };
    l.map(&seen, &[dots, own, positions, own_seq, seqs])
}

/// A sink is one more score, without a value.
fn softmax(l: &mut Lowering, scores: ValueId, sinks: Option<ValueId>) -> Result<ValueId, NoGeneralForm> {
    let mut max = l.reduce_last(ReduceKind::Max, scores)?;
    if let Some(sinks) = sinks {
        max = l.map("max(x0, x1)", &[max, sinks])?;
    }
    let exp = l.map("exp(sub(x0, x1))", &[scores, max])?;
    let mut sum = l.reduce_last(ReduceKind::Sum, exp)?;
    if let Some(sinks) = sinks {
        sum = l.map("add(x0, exp(sub(x1, x2)))", &[sum, sinks, max])?;
    }
    l.map("div(x0, x1)", &[exp, sum])
}
