//! The weight plan: one decision a weight, for all buckets.

use crate::decision::Decisions;
use crate::error::CompileError;
use crate::recognise::recognised;
use yirage_ir::{DType, Graph, Op, Source, ValueId};
use yirage_plan::weights::ROWS;
use yirage_plan::{Target, WeightEntry, WeightPlan, matrices, readers};

/// Layout, format and shard axis of every weight of `graph` on `target`.
///
/// Weights that products read take the target's product layout, look-ups in the same table included (a tied
/// embedding is held once); all others stay rows of floats.
///
/// # Errors
/// A graph that does not hold together, and a weight that products read as different numbers of matrices.
pub fn plan_weights(graph: &Graph, target: &Target) -> Result<WeightPlan, CompileError> {
    yirage_ir::verify(graph)?;
    let graph = &recognised(graph, &mut Decisions::unheard())?;
    let entries = graph.inputs_of(Source::Weight).map(|id| entry(graph, id, target));
    Ok(WeightPlan { entries: entries.collect::<Result<_, _>>()? })
}

fn entry(graph: &Graph, id: ValueId, target: &Target) -> Result<WeightEntry, CompileError> {
    let v = graph.value(id);
    let product = readers(graph, id).iter().any(|r| matches!(r, (Op::Linear(_) | Op::ExpertLinear(_), 1)));
    let quantised = matches!(v.ty.dtype, DType::Stored(f) if f.info().block > 1);
    let layout = if product || quantised { target.product_layout.clone() } else { ROWS.to_string() };
    // Rows of a product's weight are outputs: splitting them needs no sum across devices.
    let shard_axis = if product { Some(v.ty.shape.len() as u32 - 2) } else { None };
    let mut matrices = matrices(graph, id).into_iter();
    let groups = matrices.next().unwrap_or(1);
    match matrices.find(|&other| other != groups).filter(|_| layout == target.product_layout) {
        None => Ok(WeightEntry { name: v.name.clone(), ty: v.ty.clone(), layout, groups, shard_axis }),
        Some(other) => Err(CompileError::Unsupported {
            what: format!("the weight `{}` read as {groups} matrices and as {other}", v.name),
            why: "a weight is held once; give it twice, under two names".into(),
        }),
    }
}

/// The entries of the weights that a graph still reads, in its order.
pub(crate) fn of_graph(graph: &Graph, plan: &WeightPlan) -> WeightPlan {
    let entries = graph.inputs_of(Source::Weight).filter_map(|id| plan.get(&graph.value(id).name).cloned());
    WeightPlan { entries: entries.collect() }
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
