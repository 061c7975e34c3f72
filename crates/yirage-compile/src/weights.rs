//! The weight plan: one decision a weight, for all buckets.

use crate::error::CompileError;
use yirage_ir::{DType, Graph, NodeKind, Op, Source, ValueId};
use yirage_plan::weights::ROWS;
use yirage_plan::{Target, WeightEntry, WeightPlan};

/// Layout, format and shard axis of every weight of `graph` on `target`.
///
/// Weights that products read take the target's product layout, look-ups in the same table included (a tied
/// embedding is held once); all others stay rows of floats.
pub fn plan_weights(graph: &Graph, target: &Target) -> Result<WeightPlan, CompileError> {
    yirage_ir::verify(graph)?;
    let entry = |id: ValueId| {
        let v = graph.value(id);
        let product = readers(graph, id).any(|op| matches!(op, Op::Linear(_) | Op::ExpertLinear(_)));
        let quantised = matches!(v.ty.dtype, DType::Stored(f) if f.info().block > 1);
        let layout = if product || quantised { target.product_layout.clone() } else { ROWS.to_string() };
        // Rows of a product's weight are outputs: splitting them needs no sum across devices.
        let shard_axis = if product { Some(v.ty.shape.len() as u32 - 2) } else { None };
        let grouped = readers(graph, id).find_map(|op| if let Op::Linear(l) = op { Some(l.groups) } else { None });
        WeightEntry { name: v.name.clone(), ty: v.ty.clone(), layout, groups: grouped.unwrap_or(1), shard_axis }
    };
    Ok(WeightPlan { entries: graph.inputs_of(Source::Weight).map(entry).collect() })
}

fn readers(graph: &Graph, id: ValueId) -> impl Iterator<Item = &Op> {
    graph.nodes.iter().filter(move |n| n.ins.contains(&id)).filter_map(|n| match &n.kind {
        NodeKind::Op(op) => Some(op),
        NodeKind::Region(_) => None,
    })
}

/// Checks that `plan` covers the weights of `graph` with their types.
pub(crate) fn check(graph: &Graph, plan: &WeightPlan) -> Result<(), CompileError> {
    for id in graph.inputs_of(Source::Weight) {
        let v = graph.value(id);
        let entry = plan.get(&v.name);
        if entry.is_none_or(|e| e.ty != v.ty) {
            return Err(CompileError::Weights {
                name: v.name.clone(),
                graph: v.ty.to_string(),
                plan: entry.map_or("absent".to_string(), |e| e.ty.to_string()),
            });
        }
    }
    Ok(())
}
