//! Places every value in one arena so that values alive at the same time never share bytes.

use crate::error::CompileError;
use yirage_ir::Value;
use yirage_plan::limits::MAX_ARENA;
use yirage_plan::{BufferPlacement, Lifetime, Plan, Target, lifetimes};

/// A value to place.
struct UnplacedValue {
    life: Lifetime,
    bytes: u64,
}

/// Places the values of a plan whose graph and steps are final: greedy by size, each value at the lowest offset where it
/// meets no value of its lifetime.
pub(crate) fn assign_offsets(plan: &mut Plan, target: &Target) -> Result<(), CompileError> {
    let mut phase = vec![0; plan.graph.nodes.len()];
    plan.steps.iter().for_each(|s| phase[s.node as usize] = s.phase);
    let mut items =
        lifetimes(plan, &phase).into_iter().map(|life| item(plan, life, target)).collect::<Result<Vec<_>, _>>()?;
    items.sort_by_key(|i| (std::cmp::Reverse(i.bytes), i.life.from, i.life.value));
    let mut placed: Vec<(UnplacedValue, u64)> = Vec::new();
    for item in items {
        let offset = lowest_fit(&item, &placed, u64::from(target.limits.align));
        let end = offset.and_then(|offset| offset.checked_add(item.bytes)).filter(|&end| end <= MAX_ARENA);
        let (Some(offset), Some(end)) = (offset, end) else { return Err(too_large(plan, &item.life)) };
        plan.arena = plan.arena.max(end);
        placed.push((item, offset));
    }
    placed.sort_by_key(|(i, _)| i.life.value);
    let place = |(i, offset): (UnplacedValue, u64)| BufferPlacement { value: i.life.value, offset, bytes: i.bytes };
    plan.placements = placed.into_iter().map(place).collect();
    Ok(())
}

fn item(plan: &Plan, life: Lifetime, target: &Target) -> Result<UnplacedValue, CompileError> {
    let bytes = target.storage_bytes(&plan.graph.value(life.value).ty, &plan.bucket);
    let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(u64::from(target.limits.align)));
    Ok(UnplacedValue { bytes: bytes.ok_or_else(|| too_large(plan, &life))?, life })
}

fn too_large(plan: &Plan, life: &Lifetime) -> CompileError {
    let Value { name, ty, .. } = plan.graph.value(life.value);
    CompileError::Unsupported {
        what: format!("`{name}` of {ty} in the bucket {:?}", plan.bucket),
        why: format!("computed values take more than {MAX_ARENA} bytes together"),
    }
}

/// The lowest offset at which the value meets no other; none where that is no number.
fn lowest_fit(item: &UnplacedValue, placed: &[(UnplacedValue, u64)], align: u64) -> Option<u64> {
    let mut busy: Vec<(u64, u64)> = placed
        .iter()
        .filter(|(other, _)| other.life.from <= item.life.to && item.life.from <= other.life.to)
        .map(|(other, offset)| (*offset, offset + other.bytes))
        .collect();
    busy.sort_unstable();
    let mut at: u64 = 0;
    for (from, to) in busy {
        if at.checked_add(item.bytes)? <= from {
            break;
        }
        at = at.max(to.checked_next_multiple_of(align)?);
    }
    Some(at)
}
