//! Values that live at the same time share no bytes, and each has as many as it takes.

use crate::error::PlanError;
use crate::lifetimes::{Lifetime, lifetimes};
use crate::limits::MAX_ARENA;
use crate::plan::{BufferPlacement, Plan};
use crate::target::Target;
use std::collections::HashMap;

// Proves: **Places**: each computed value that is no state has one, at a multiple of the target's alignment, of at least the bytes
// that its type takes on the target in the bucket; inside the arena; apart from all that lives at the same time.
/// Checks the places of a plan whose graph is sound and whose node n runs in phase `phase[n]`.
pub(super) fn check(plan: &Plan, target: &Target, phase: &[u32]) -> Result<(), PlanError> {
    if plan.arena > MAX_ARENA {
        return Err(PlanError(format!("an arena of {} bytes; {MAX_ARENA} are the most", plan.arena)));
    }
    let by_value: HashMap<_, _> = plan.placements.iter().map(|p| (p.value, p)).collect();
    let mut lives = Vec::new();
    for life in lifetimes(plan, phase) {
        let place = by_value.get(&life.value);
        let missing = || PlanError(format!("value {} has no place", life.value.0));
        let place: &BufferPlacement = place.ok_or_else(missing)?;
        check_placement(plan, target, place)?;
        lives.push((life, place));
    }
    if lives.len() != plan.placements.len() {
        let (places, values) = (plan.placements.len(), lives.len());
        return Err(PlanError(format!("{places} places for {values} values: one is placed twice, or needs no place")));
    }
    check_apart(lives)
}

fn check_placement(plan: &Plan, target: &Target, place: &BufferPlacement) -> Result<(), PlanError> {
    let (value, ty) = (place.value.0, plan.graph.values.get(place.value.index()).map(|v| &v.ty));
    let wanted = ty.and_then(|ty| target.storage_bytes(ty, &plan.bucket));
    if wanted.is_none_or(|wanted| place.bytes < wanted) {
        let wanted = wanted.map_or("more than there are".into(), |w| w.to_string());
        return Err(PlanError(format!("value {value} has {} bytes and takes {wanted}", place.bytes)));
    }
    if !place.offset.is_multiple_of(u64::from(target.limits.align.max(1))) {
        return Err(PlanError(format!("value {value} at {} is not aligned to {}", place.offset, target.limits.align)));
    }
    if place.offset.checked_add(place.bytes).is_none_or(|end| end > plan.arena) {
        return Err(PlanError(format!("value {value} ends outside the arena of {} bytes", plan.arena)));
    }
    Ok(())
}

fn check_apart(mut lives: Vec<(Lifetime, &BufferPlacement)>) -> Result<(), PlanError> {
    // Values of no bytes share none with others.
    lives.retain(|(_, place)| place.bytes > 0);
    lives.sort_by_key(|(life, place)| (life.from, place.offset));
    for (i, (a, at)) in lives.iter().enumerate() {
        for (b, bt) in lives[i + 1..].iter().take_while(|(b, _)| b.from <= a.to) {
            if at.offset + at.bytes > bt.offset && bt.offset + bt.bytes > at.offset {
                return Err(PlanError(format!("values {} and {} share bytes while both live", a.value.0, b.value.0)));
            }
        }
    }
    Ok(())
}
