//! Copies of operands that a kernel does not take where they lie, but would take computed: a step of their own, which the
//! plan shows.

use crate::error::CompileError;
use crate::rebuild::Rebuild;
use yirage_ir::op::{Form, View};
use yirage_ir::{Dim, Graph, NodeKind, Source, ValueId};
use yirage_plan::{Lying, Refusal, Target, WeightPlan, choose};

pub(crate) fn run(graph: &Graph, target: &Target, weights: &WeightPlan) -> Result<Graph, CompileError> {
    let mut out = graph.clone();
    // Each round copies one more input of each node that is refused; what no copy helps is refused for good.
    for _ in 0..graph.nodes.iter().map(|n| n.ins.len()).max().unwrap_or(0) {
        let refused = refused(&out, target, weights);
        if refused.iter().all(Option::is_none) {
            return Ok(out);
        }
        out = copied(&out, &refused)?;
    }
    // A node that is refused all the same is told of as it was.
    let helped = refused(&out, target, weights).iter().all(Option::is_none);
    Ok(if helped { out } else { graph.clone() })
}

/// For each node the input that its nearest kernel does not take, if a copy of it can be made.
fn refused(graph: &Graph, target: &Target, weights: &WeightPlan) -> Vec<Option<ValueId>> {
    let lying = Lying::new(graph, weights, target);
    let input = |node: &yirage_ir::Node| {
        let Err(Refusal::Input(refused)) = choose(target, &lying, node) else { return None };
        let id = node.ins.iter().copied().find(|&i| graph.value(i).name == refused.name)?;
        let given = matches!(graph.value(id).source, Source::Slot | Source::Weight);
        (given && graph.ty(id).shape.iter().all(|d| matches!(d, Dim::Const(_)))).then_some(id)
    };
    graph.nodes.iter().map(input).collect()
}

fn copied(graph: &Graph, refused: &[Option<ValueId>]) -> Result<Graph, CompileError> {
    let mut r = Rebuild::new(graph, |_| true)?;
    let mut copies: Vec<(ValueId, ValueId)> = Vec::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        if let Some(id) = refused[n]
            && !copies.iter().any(|(of, _)| *of == id)
        {
            let name = format!("{}.copy", graph.value(id).name);
            let view = View { form: Form::Reshape(graph.ty(id).shape.clone()) };
            let made = r.add(NodeKind::Op(view.into()), &[r.get(id)], &[name])?;
            copies.push((id, made[0]));
        }
        let copy = |i: ValueId| copies.iter().find(|(of, _)| refused[n] == Some(i) && *of == i).map(|(_, copy)| *copy);
        let ins: Vec<ValueId> = node.ins.iter().map(|&i| copy(i).unwrap_or_else(|| r.get(i))).collect();
        r.copy(n, &ins)?;
    }
    Ok(r.finish())
}
