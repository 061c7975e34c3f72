//! The weight plan: one decision a weight, for all buckets.

use crate::decision::Decisions;
use crate::error::CompileError;
use crate::ranks::divided_weights;
use crate::recognise::recognised;
use std::collections::HashSet;
use yirage_ir::{DType, Graph, NodeKind, Op, Region, RegionKind, ValueId, ValueSource};
use yirage_plan::rules::{OpRule, OperandKind};
use yirage_plan::{Target, WeightEntry, WeightLayout, WeightLayoutFacts, WeightPlan, WeightRole, matrices, readers};

/// Layout, format and shard axis of every weight of `graph` on `target`.
///
/// Each takes the layout that the target wants most for what it is for and its format. A table that products read too is
/// theirs (a tied embedding is held once). What general products alone read lies in a layout for factors where the target's
/// kernels take it so, else as a plain weight.
///
/// # Errors
/// A graph that does not hold together, and a weight that products read as different numbers of matrices.
pub fn plan_weights(graph: &Graph, target: &Target) -> Result<WeightPlan, CompileError> {
    yirage_ir::verify(graph)?;
    let graph = &recognised(graph, &mut Decisions::unheard())?;
    let multiplied = multiplied_alone(graph);
    let divided = divided_weights(graph, target);
    let entry = |id| {
        let mut entry = entry(graph, id, target, multiplied.contains(&id))?;
        if target.ranks > 1 {
            entry.shard_axis = divided.get(&id).copied();
        }
        Ok::<_, CompileError>(entry)
    };
    let entries = graph.inputs_of(ValueSource::Weight).map(entry);
    Ok(WeightPlan { entries: entries.collect::<Result<_, _>>()? })
}

fn entry(graph: &Graph, id: ValueId, target: &Target, multiplied: bool) -> Result<WeightEntry, CompileError> {
    let v = graph.value(id);
    let product = readers(graph, id).iter().any(|r| matches!(r, (Op::Linear(_) | Op::ExpertLinear(_), 1)));
    let quantised = matches!(v.ty.dtype, DType::Stored(f) if f.info().block > 1);
    let facts = match product || quantised {
        true => layout_of(target, WeightRole::Matmul, v.ty.dtype, |_| true),
        false => multiplied
            .then(|| layout_of(target, WeightRole::Factor, v.ty.dtype, |l| takes_factor(target, l, v.ty.dtype)))
            .flatten()
            .or_else(|| layout_of(target, WeightRole::Plain, v.ty.dtype, |_| true)),
    };
    let facts = facts.ok_or_else(|| no_layout(target, &v.name, v.ty.dtype))?;
    let layout = facts.layout.name().to_string();
    // Rows of a product's weight are outputs: splitting them needs no sum across devices.
    let shard_axis = if product { Some(v.ty.shape.len() as u32 - 2) } else { None };
    let mut matrices = matrices(graph, id).into_iter();
    let groups = matrices.next().unwrap_or(1);
    match matrices.find(|&other| other != groups).filter(|_| facts.has_matrices()) {
        None => Ok(WeightEntry { name: v.name.clone(), ty: v.ty.clone(), layout, groups, shard_axis }),
        Some(other) => Err(CompileError::Unsupported {
            what: format!("the weight `{}` read as {groups} matrices and as {other}", v.name),
            why: "a weight is held once; give it twice, under two names".into(),
        }),
    }
}

/// The values that general products read, themselves or through views, and nothing else.
fn multiplied_alone(graph: &Graph) -> HashSet<ValueId> {
    let mut multiplied = HashSet::new();
    let mut other: HashSet<ValueId> = graph.outputs.iter().copied().collect();
    for node in graph.nodes.iter().rev() {
        let out_is = |set: &HashSet<ValueId>| node.outs.iter().any(|out| set.contains(out));
        let (as_factor, as_other) = match &node.kind {
            NodeKind::Op(Op::Contract(_)) => (node.ins.clone(), Vec::new()),
            NodeKind::Op(Op::View(_)) if out_is(&other) => (Vec::new(), node.ins.clone()),
            NodeKind::Op(Op::View(_)) => {
                (node.ins.iter().copied().filter(|_| out_is(&multiplied)).collect(), Vec::new())
            }
            NodeKind::Region(region) if region.kind == RegionKind::Tiled => tiles_multiplied(region, &node.ins),
            _ => (Vec::new(), node.ins.clone()),
        };
        multiplied.extend(as_factor);
        other.extend(as_other);
    }
    multiplied.retain(|id| !other.contains(id));
    multiplied
}

/// Of what a tiled region reads, what its products multiply alone, and what else is done with.
fn tiles_multiplied(region: &Region, ins: &[ValueId]) -> (Vec<ValueId>, Vec<ValueId>) {
    let (mut as_factor, mut as_other) = (Vec::new(), Vec::new());
    for part in region.parts() {
        // Regions hold ops alone, so this goes no deeper.
        let multiplied = multiplied_alone(part.graph);
        for (inner, outer) in part.graph.inputs.iter().zip(&part.ins) {
            let Some(outer) = outer.and_then(|at| ins.get(at)) else { continue };
            if multiplied.contains(inner) { as_factor.push(*outer) } else { as_other.push(*outer) }
        }
    }
    (as_factor, as_other)
}

/// The layout that the target wants most for weights of a role and these elements, of those that are `fit`.
fn layout_of(
    target: &Target,
    role: WeightRole,
    dtype: DType,
    fit: impl Fn(WeightLayout) -> bool,
) -> Option<&WeightLayoutFacts> {
    target.weight_layouts.iter().find(|facts| facts.roles.contains(&role) && facts.holds(dtype) && fit(facts.layout))
}

fn no_layout(target: &Target, name: &str, dtype: DType) -> CompileError {
    let layouts: Vec<&str> = target.weight_layouts.iter().map(|facts| facts.layout.name()).collect();
    CompileError::Unsupported {
        what: format!("the weight `{name}` of {}", dtype.name()),
        why: format!("of the layouts of {} ({}) none is for such weights", target.describe(), layouts.join(", ")),
    }
}

/// Whether a kernel multiplies weights of these elements, on either side, where they lie in a layout.
fn takes_factor(target: &Target, layout: WeightLayout, dtype: DType) -> bool {
    let kind = OperandKind::Weight(layout);
    let mut rules = target.kernels.iter().flat_map(|kernel| &kernel.rules).filter(|rule| rule.op == "contract");
    let takes = |at| {
        move |rule: &OpRule| rule.constraints(at).iter().any(|way| way.kind == kind && way.dtypes.contains(&dtype))
    };
    rules.any(|rule| takes(0)(rule) && takes(1)(rule))
}

/// The entries of the weights that a graph still reads, in its order, as one of so many ranks has them.
pub(crate) fn of_graph(graph: &Graph, plan: &WeightPlan, ranks: u32) -> WeightPlan {
    let entry = |id| {
        let value = graph.value(id);
        let entry = plan.get(&value.name)?.clone();
        // A rank's part of a weight is a weight of its own.
        if entry.ty == value.ty { Some(entry) } else { entry.part(ranks) }
    };
    WeightPlan { entries: graph.inputs_of(ValueSource::Weight).filter_map(entry).collect() }
}

/// Checks that `plan` covers the weights of `graph` with their types.
pub(crate) fn check(graph: &Graph, plan: &WeightPlan) -> Result<(), CompileError> {
    for id in graph.inputs_of(ValueSource::Weight) {
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
