//! Makes the precision explicit: in `fast`, products with block-quantised weights read activations in the layout that the
//! target wants most. Where it has none, they stay floats.
//!
//! Each input is quantised once, however many products read it, whatever the formats of their weights.

use crate::Options;
use crate::error::CompileError;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::op::Quantize;
use yirage_ir::{DType, Graph, NodeKind, Op, ValueId};
use yirage_plan::{LayoutFacts, Precision, Target};

pub(crate) fn run(graph: &Graph, target: &Target, options: &Options) -> Result<Graph, CompileError> {
    let mut r = Rebuild::new(graph, |_| true)?;
    let wanted = target.activation_layouts.first().filter(|_| options.precision == Precision::Fast);
    // Products with chosen experts read their activations token by token, the others in tiles of tokens: the two do
    // not share a quantised value, because a target may hold them differently.
    let mut quantised: HashMap<(ValueId, Option<u32>), ValueId> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let mut ins: Vec<ValueId> = node.ins.iter().map(|&i| r.get(i)).collect();
        if let Some(facts) = wanted.filter(|facts| wants_codes(graph, n, facts)) {
            let x = node.ins[0];
            let by_expert = expert_parts(&node.kind);
            let q = match quantised.get(&(x, by_expert)) {
                Some(&q) => q,
                None => {
                    let name = format!("{}.q8{}", graph.value(x).name, if by_expert.is_some() { "x" } else { "" });
                    let quantize = Quantize { layout: facts.layout, parts: by_expert.unwrap_or(1) };
                    r.add(NodeKind::Op(quantize.into()), &ins[..1], &[name])?[0]
                }
            };
            quantised.insert((x, by_expert), q);
            ins[0] = q;
        }
        r.copy(n, &ins)?;
    }
    Ok(r.finish())
}

/// For a product with chosen experts: the parts of a row that its experts read.
fn expert_parts(kind: &NodeKind) -> Option<u32> {
    match kind {
        NodeKind::Op(Op::ExpertLinear(op)) => Some(if op.shared { 1 } else { op.top_k }),
        _ => None,
    }
}

/// Whether node `n` is a product of f32 activations with a block-quantised weight, whose rows the layout can hold.
fn wants_codes(graph: &Graph, n: usize, facts: &LayoutFacts) -> bool {
    let node = &graph.nodes[n];
    let whole = |of: usize| graph.ty(node.ins[1]).width().is_some_and(|k| k.is_multiple_of(of));
    // Per-head products stay in f32: their inputs are short slices of a row.
    let product = match &node.kind {
        NodeKind::Op(Op::Linear(l)) => l.groups == 1,
        // Parts of a row that the target would have to pad apart stay in f32 too.
        NodeKind::Op(Op::ExpertLinear(op)) => op.shared || whole(facts.row_multiple as usize),
        _ => false,
    };
    if !product || graph.ty(node.ins[0]).dtype != DType::F32 || !whole(facts.layout.info().block) {
        return false;
    }
    matches!(graph.ty(node.ins[1]).dtype, DType::Stored(f) if f.info().block > 1)
}
