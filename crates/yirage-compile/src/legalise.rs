//! Makes the precision explicit: in `fast`, products with block-quantised weights read activations in the layout that the
//! target wants most. Where it has none, they stay floats.
//!
//! Each input is quantised once, however many products read it, whatever the formats of their weights.

use crate::CompileOptions;
use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::names;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::op::Quantize;
use yirage_ir::{DType, Graph, NodeKind, Op, ValueId};
use yirage_plan::{ActivationFormatFacts, Precision, Target};

pub(crate) fn run(
    graph: &Graph,
    target: &Target,
    options: &CompileOptions,
    decisions: &mut Decisions,
) -> Result<Graph, CompileError> {
    let mut r = Rebuild::new(graph, |_| true)?;
    let wanted = match (options.precision, target.activation_formats.first()) {
        (Precision::Exact, _) => Err(FloatActivationReason::Exact),
        (Precision::Fast, facts) => facts.ok_or(FloatActivationReason::NoLayout),
    };
    // Products with chosen experts read their activations token by token, the others in tiles of tokens: the two do
    // not share a quantised value, because a target may hold them differently.
    let mut quantised: HashMap<(ValueId, Option<u32>), ValueId> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let mut ins: Vec<ValueId> = node.ins.iter().map(|&i| r.get(i)).collect();
        let takes = has_quantised_weight(graph, n)
            .then(|| wanted.and_then(|facts| takes_quantised_input(graph, n, facts).map(|()| facts)));
        if let Some(takes) = takes {
            decisions.tell(|| decision(graph, n, takes));
        }
        if let Some(Ok(facts)) = takes {
            let x = node.ins[0];
            let by_expert = expert_parts(&node.kind);
            let q = match quantised.get(&(x, by_expert)) {
                Some(&q) => q,
                None => {
                    let name = format!("{}.q8{}", graph.value(x).name, if by_expert.is_some() { "x" } else { "" });
                    let quantize = Quantize { layout: facts.format, parts: by_expert.unwrap_or(1) };
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

/// Why a product reads floats.
#[derive(Clone, Copy)]
enum FloatActivationReason {
    /// The precision says so.
    Exact,
    /// The target has no codes.
    NoLayout,
    /// It is a product by groups.
    Groups,
    /// Its rows are no whole blocks.
    Width,
    /// They are no f32 numbers.
    Type,
}

/// Whether node `n` is a product with a block-quantised weight.
fn has_quantised_weight(graph: &Graph, n: usize) -> bool {
    let node = &graph.nodes[n];
    let product = matches!(node.kind, NodeKind::Op(Op::Linear(_) | Op::ExpertLinear(_)));
    product && matches!(graph.ty(node.ins[1]).dtype, DType::Stored(f) if f.info().block > 1)
}

/// Whether such a product can read its activations in a layout.
///
/// # Errors
/// Why not.
fn takes_quantised_input(graph: &Graph, n: usize, facts: &ActivationFormatFacts) -> Result<(), FloatActivationReason> {
    let node = &graph.nodes[n];
    let whole = |of: usize| graph.ty(node.ins[1]).width().is_some_and(|k| k.is_multiple_of(of));
    match &node.kind {
        // Per-head products stay in f32: their inputs are short slices of a row.
        NodeKind::Op(Op::Linear(l)) if l.groups != 1 => return Err(FloatActivationReason::Groups),
        // Parts of a row that the target would have to pad apart stay in f32 too.
        NodeKind::Op(Op::ExpertLinear(op)) if !op.shared && !whole(facts.row_multiple as usize) => {
            return Err(FloatActivationReason::Width);
        }
        _ => {}
    }
    if graph.ty(node.ins[0]).dtype != DType::F32 {
        return Err(FloatActivationReason::Type);
    }
    if whole(facts.format.info().block) { Ok(()) } else { Err(FloatActivationReason::Width) }
}

fn decision(graph: &Graph, n: usize, takes: Result<&ActivationFormatFacts, FloatActivationReason>) -> Decision {
    let node = &graph.nodes[n];
    let (values, x) = (names::of_node(graph, n), names::quoted(graph, node.ins[0]));
    let what = format!("a product that reads {x} as codes");
    let why = match takes {
        Ok(facts) => {
            let (weight, layout) = (graph.ty(node.ins[1]), facts.format);
            return Decision::done(values, what, format!("the weight is {weight}, and the precision allows {layout}"));
        }
        Err(FloatActivationReason::Exact) => "the precision is exact".into(),
        Err(FloatActivationReason::NoLayout) => "the target has no layout of activations".into(),
        Err(FloatActivationReason::Groups) => "a product by groups reads short slices of a row".into(),
        Err(FloatActivationReason::Width) => format!("rows of {} are no whole blocks", graph.ty(node.ins[1])),
        Err(FloatActivationReason::Type) => format!("{x} is {}, not f32", graph.ty(node.ins[0])),
    };
    Decision::refused(values, what, why)
}
