//! What a plan gets from outside and gives back: the bucket, step inputs, weights, outputs.

use crate::error::PlanError;
use crate::limits::{MAX_STEP_INPUT_BYTES, MAX_SYMBOL};
use crate::plan::Plan;
use crate::readers::matrices;
use crate::target::Target;
use crate::weight_layout::WeightLayoutFacts;
use std::collections::HashSet;
use yirage_ir::{Graph, Sym, Type, Value, ValueId, ValueSource};

// Proves: **Sizes are numbers.** Each symbol of the bucket is from 1 to [`crate::limits::MAX_SYMBOL`]; what a step input holds at those
// sizes is at most [`crate::limits::MAX_STEP_INPUT_BYTES`], what a placed value takes lies in the arena, which is at most
// [`crate::limits::MAX_ARENA`]. So `elems` and `bytes` of these types do not overflow for any sizes within the bucket.
/// Checks it of a plan whose graph is sound.
pub(super) fn check(plan: &Plan, target: &Target) -> Result<(), PlanError> {
    for sym in Sym::ALL {
        let size = plan.bucket.get(sym);
        if size == 0 || size > MAX_SYMBOL {
            return Err(PlanError(format!("the bucket has {size} {}, from 1 to {MAX_SYMBOL} are wanted", sym.name())));
        }
    }
    let graph = &plan.graph;
    for &id in &graph.inputs {
        let value = graph.value(id);
        if value.source == ValueSource::StepInput {
            check_step_input(plan, value)?;
        } else if value.source == ValueSource::KvCache {
            check_kv_cache(value, target)?;
        }
    }
    graph.outputs.iter().try_for_each(|&id| check_output(graph, id))?;
    check_weights(plan, target)
}

// Proves: **Step inputs** are of plain numbers ([`yirage_ir::DType::is_plain`]: f32, f16, bf16, i32, u32, bool), dense or with strides, and
// no quantised activations.
fn check_step_input(plan: &Plan, input: &Value) -> Result<(), PlanError> {
    let (name, ty) = (&input.name, &input.ty);
    if !leaves_and_enters(ty) {
        return Err(PlanError(format!("the step input `{name}` is {ty}: plain numbers are wanted")));
    }
    match ty.checked_storage_elems(&plan.bucket).and_then(|elems| elems.checked_mul(ty.dtype.row_bytes(1))) {
        Some(bytes) if bytes as u64 <= MAX_STEP_INPUT_BYTES => Ok(()),
        _ => Err(PlanError(format!("the step input `{name}` of {ty} has no size in the bucket {:?}", plan.bucket))),
    }
}

// Proves: **KV caches** have no strides, and those of keys and values a layout of the target, of their format and length of a block.
fn check_kv_cache(cache: &Value, target: &Target) -> Result<(), PlanError> {
    let (name, ty) = (&cache.name, &cache.ty);
    if ty.strides.is_some() {
        return Err(PlanError(format!("the KV cache `{name}` has strides")));
    }
    match target.kv_cache_layout_of(ty) {
        Some(_) => Ok(()),
        None => {
            Err(PlanError(format!("the KV cache `{name}` of {ty} has no layout of the target {}", target.describe())))
        }
    }
}

/// Whether the host can say and be told elements of this type.
fn leaves_and_enters(ty: &Type) -> bool {
    ty.activation_format.is_none() && ty.dtype.is_plain()
}

// Proves: **Outputs** are KV caches, or computed values of plain numbers, as step inputs are.
/// KV caches stay where they are; everything else is read from its place.
fn check_output(graph: &Graph, id: ValueId) -> Result<(), PlanError> {
    let v = graph.value(id);
    let made = matches!(v.source, ValueSource::Node { .. }) && leaves_and_enters(&v.ty);
    if made || graph.kv_cache_of(id).is_some() {
        return Ok(());
    }
    Err(PlanError(format!("the output `{}` is {}, no computed value of plain numbers", v.name, v.ty)))
}

// Proves: **Weights**: each has one entry with its type and a layout of the target, of its format; all that read it in a layout of
// products' matrices read it as the same number of them.
fn check_weights(plan: &Plan, target: &Target) -> Result<(), PlanError> {
    let mut names = HashSet::new();
    for entry in &plan.weights.entries {
        let (name, layout, facts) = (&entry.name, &entry.layout, target.weight_layout(&entry.layout));
        if !names.insert(name) || facts.is_none() {
            return Err(PlanError(format!("the weight `{name}` is there twice, or its layout `{layout}` is unknown")));
        }
        if facts.is_some_and(|facts| !facts.holds(entry.ty.dtype)) {
            let dtype = entry.ty.dtype.name();
            return Err(PlanError(format!("the weight `{name}` of {dtype} is of no format of the layout `{layout}`")));
        }
    }
    let ids: Vec<ValueId> = plan.graph.inputs_of(ValueSource::Weight).collect();
    for &id in &ids {
        let v = plan.graph.value(id);
        let entry = plan.weights.get(&v.name).filter(|e| e.ty == v.ty);
        let entry = entry.ok_or_else(|| PlanError(format!("no weight is called `{}` and {}", v.name, v.ty)))?;
        if !target.weight_layout(&entry.layout).is_some_and(WeightLayoutFacts::has_matrices) {
            continue;
        }
        if let Some(read) = matrices(&plan.graph, id).into_iter().find(|&n| n != entry.groups) {
            let (name, groups) = (&v.name, entry.groups);
            return Err(PlanError(format!("the weight `{name}` of {groups} matrices is read as {read}")));
        }
    }
    if ids.len() != plan.weights.entries.len() {
        return Err(PlanError(format!("{} weights for a graph of {}", plan.weights.entries.len(), ids.len())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::{DType, Format};

    #[test]
    fn plain_numbers_enter_and_leave_with_strides_or_without() {
        let plain = [Format::F32, Format::F16, Format::BF16].map(DType::Stored);
        for dtype in plain.into_iter().chain([DType::I32, DType::U32, DType::Bool]) {
            let dense = Type::new(dtype, [4u32, 6]);
            let strided = Type { strides: Some(vec![1, 9]), ..dense.clone() };
            assert!(leaves_and_enters(&dense) && leaves_and_enters(&strided), "{dtype:?}");
        }
        for dtype in [DType::I8, DType::Stored(Format::Q8_0), DType::Stored(Format::Q4_K)] {
            assert!(!leaves_and_enters(&Type::new(dtype, [4u32, 256])), "{dtype:?}");
        }
    }
}
