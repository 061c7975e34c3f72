//! What lies where in the arena, and how long.

use crate::report::{PlacedValue, PlanMemoryReport};
use yirage_plan::{Plan, lifetimes};

pub(crate) fn memory(plan: &Plan) -> PlanMemoryReport {
    let mut phase = vec![0; plan.graph.nodes.len()];
    plan.steps.iter().for_each(|s| phase[s.node as usize] = s.phase);
    let lives = lifetimes(plan, &phase);
    let mut values: Vec<PlacedValue> = Vec::new();
    for life in &lives {
        let Some(place) = plan.placement(life.value) else { continue };
        let value = plan.graph.value(life.value);
        values.push(PlacedValue {
            name: value.name.clone(),
            ty: value.ty.to_string(),
            offset: place.offset,
            bytes: place.bytes,
            from: life.from,
            to: (life.to != u32::MAX).then_some(life.to),
        });
    }
    values.sort_by(|a, b| (a.offset, a.from, &a.name).cmp(&(b.offset, b.from, &b.name)));
    let alive = |phase: u32| {
        let there = values.iter().filter(|v| v.from <= phase && v.to.is_none_or(|to| to >= phase));
        there.map(|v| v.bytes).sum::<u64>()
    };
    PlanMemoryReport {
        arena_bytes: plan.arena,
        value_bytes: values.iter().map(|v| v.bytes).sum(),
        alive_bytes: (0..plan.phases()).map(alive).max().unwrap_or(0),
        phases: plan.phases(),
        values,
    }
}
