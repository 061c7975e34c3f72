//! Places every value in one arena so that values alive at the same time never share bytes.

use crate::error::CompileError;
use yirage_ir::Value;
use yirage_plan::limits::MAX_ARENA;
use yirage_plan::{BufferPlacement, Lifetime, MemoryRequest, Plan, Target, lifetimes, plan_memory};

/// Places the values of a plan whose graph and steps are final.
pub(crate) fn assign_offsets(plan: &mut Plan, target: &Target) -> Result<(), CompileError> {
    let mut phase = vec![0; plan.graph.nodes.len()];
    plan.steps.iter().for_each(|s| phase[s.node as usize] = s.phase);
    let lives = lifetimes(plan, &phase);
    let requests = lives.iter().map(|life| request(plan, life, target)).collect::<Result<Vec<_>, _>>()?;
    let layout = plan_memory(&requests, u64::from(target.limits.align)).filter(|layout| layout.end <= MAX_ARENA);
    let layout = layout.ok_or_else(|| unsupported(format!("the computed values in the bucket {:?}", plan.bucket)))?;
    plan.arena = layout.end;
    let placed = lives.iter().zip(&requests).zip(layout.offsets);
    let place = |((life, request), offset): ((&Lifetime, &MemoryRequest), u64)| BufferPlacement {
        value: life.value,
        offset,
        bytes: request.bytes,
    };
    plan.placements = placed.map(place).collect();
    plan.placements.sort_by_key(|place| place.value);
    Ok(())
}

fn request(plan: &Plan, life: &Lifetime, target: &Target) -> Result<MemoryRequest, CompileError> {
    let bytes = target.storage_bytes(&plan.graph.value(life.value).ty, &plan.bucket);
    let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(u64::from(target.limits.align)));
    // No value may be larger than all of them.
    let bytes = bytes.filter(|&bytes| bytes <= MAX_ARENA).ok_or_else(|| too_large(plan, life))?;
    Ok(MemoryRequest { bytes, from: life.from, to: life.to })
}

fn too_large(plan: &Plan, life: &Lifetime) -> CompileError {
    let Value { name, ty, .. } = plan.graph.value(life.value);
    unsupported(format!("`{name}` of {ty} in the bucket {:?}", plan.bucket))
}

fn unsupported(what: String) -> CompileError {
    CompileError::Unsupported { what, why: format!("computed values take more than {MAX_ARENA} bytes together") }
}
