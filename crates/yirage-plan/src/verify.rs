//! What must hold for every plan before a device loads it.

use crate::plan::{Place, Plan, Step};
use std::collections::HashMap;
use thiserror::Error;
use yirage_ir::{NodeKind, Source, ValueId};

/// What is wrong with a plan.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("plan: {0}")]
pub struct PlanError(pub String);

/// Checks a plan: the graph is sound, each node runs once, producers run in earlier phases than consumers, every value
/// has a place inside the arena, no two values that live at the same time overlap, and every task program ends and is
/// free of races ([`crate::tasks::verify`]).
pub fn verify(plan: &Plan) -> Result<(), PlanError> {
    yirage_ir::verify(&plan.graph).map_err(|e| PlanError(e.to_string()))?;
    let phase = step_phases(plan)?;
    check_order(plan, &phase)?;
    check_places(plan, &phase)?;
    crate::tasks::verify::verify(plan)
}

fn step_phases(plan: &Plan) -> Result<Vec<u32>, PlanError> {
    let mut phase = vec![None; plan.graph.nodes.len()];
    let mut last = 0;
    for Step { node, kernel, phase: p } in &plan.steps {
        let slot =
            phase.get_mut(*node as usize).ok_or_else(|| PlanError(format!("step of node {node}: no such node")))?;
        if slot.replace(*p).is_some() {
            return Err(PlanError(format!("node {node} runs twice")));
        }
        if *kernel as usize >= plan.kernels.len() {
            return Err(PlanError(format!("step of node {node}: no kernel {kernel}")));
        }
        if *p < last || *p > last + 1 {
            return Err(PlanError(format!("phase {p} follows phase {last}")));
        }
        last = *p;
    }
    let missing = |n: usize| PlanError(format!("node {n} never runs"));
    phase.into_iter().enumerate().map(|(n, p)| p.ok_or_else(|| missing(n))).collect()
}

fn check_order(plan: &Plan, phase: &[u32]) -> Result<(), PlanError> {
    for (n, node) in plan.graph.nodes.iter().enumerate() {
        for &i in &node.ins {
            if let Source::Node { node: maker, .. } = plan.graph.value(i).source
                && phase[maker as usize] >= phase[n]
            {
                return Err(PlanError(format!("node {n} reads `{}` before it is whole", plan.graph.value(i).name)));
            }
        }
    }
    Ok(())
}

/// A placed value with the phases in which its bytes must hold.
struct Life<'a> {
    place: &'a Place,
    from: u32,
    to: u32,
}

fn check_places(plan: &Plan, phase: &[u32]) -> Result<(), PlanError> {
    let by_key: HashMap<_, _> = plan.places.iter().map(|p| ((p.region, p.value), p)).collect();
    if by_key.len() != plan.places.len() {
        return Err(PlanError("a value is placed twice".into()));
    }
    let mut lives = Vec::new();
    for (region, value, from, to) in lifetimes(plan, phase) {
        let Some(place) = by_key.get(&(region, value)) else {
            return Err(PlanError(format!("value {} of region {region:?} has no place", value.0)));
        };
        if place.offset.checked_add(place.bytes).is_none_or(|end| end > plan.arena) {
            return Err(PlanError(format!("value {} ends outside the arena of {} bytes", value.0, plan.arena)));
        }
        lives.push(Life { place, from, to });
    }
    lives.sort_by_key(|l| (l.from, l.place.offset));
    for (i, a) in lives.iter().enumerate() {
        for b in lives[i + 1..].iter().take_while(|b| b.from <= a.to) {
            let apart =
                a.place.offset + a.place.bytes <= b.place.offset || b.place.offset + b.place.bytes <= a.place.offset;
            if !apart {
                let (a, b) = (a.place.value.0, b.place.value.0);
                return Err(PlanError(format!("values {a} and {b} share bytes while both live")));
            }
        }
    }
    Ok(())
}

/// Every value that needs a place (cache states lie in the cache), with the first and last phase it lives in: the graph's, then each region's own.
pub fn lifetimes(plan: &Plan, phase: &[u32]) -> Vec<(Option<u32>, ValueId, u32, u32)> {
    let graph = &plan.graph;
    let mut out = Vec::new();
    for (v, value) in graph.values.iter().enumerate() {
        let Source::Node { node, .. } = value.source else { continue };
        let id = ValueId(v as u32);
        if graph.state_of(id).is_some() {
            continue;
        }
        let readers = graph.nodes.iter().enumerate().filter(|(_, n)| n.ins.contains(&id));
        let last = readers.map(|(n, _)| phase[n]).max();
        let end = if graph.outputs.contains(&id) { u32::MAX } else { last.unwrap_or(phase[node as usize]) };
        out.push((None, id, phase[node as usize], end));
    }
    for (n, node) in graph.nodes.iter().enumerate() {
        let NodeKind::Region(region) = &node.kind else { continue };
        for (v, value) in region.graph.values.iter().enumerate() {
            let id = ValueId(v as u32);
            let inner = matches!(value.source, Source::Node { .. }) && !region.graph.outputs.contains(&id);
            if inner && region.graph.state_of(id).is_none() {
                out.push((Some(n as u32), id, phase[n], phase[n]));
            }
        }
    }
    out
}
