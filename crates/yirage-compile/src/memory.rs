//! Places every value in one arena so that values alive at the same time never share bytes.

use yirage_ir::{Dims, Graph, ValueId};
use yirage_plan::verify::lifetimes;
use yirage_plan::{KernelRef, Place, Plan, Step, Target};

/// A value to place.
struct Item {
    region: Option<u32>,
    value: ValueId,
    from: u32,
    to: u32,
    bytes: u64,
}

/// The finished plan: greedy by size, each value at the lowest offset where it meets no value of its lifetime.
pub(crate) fn place(graph: Graph, bucket: Dims, target: &Target, kernels: Vec<KernelRef>, steps: Vec<Step>) -> Plan {
    let mut phase = vec![0; graph.nodes.len()];
    steps.iter().for_each(|s| phase[s.node as usize] = s.phase);
    let mut plan = Plan {
        target: target.describe(),
        bucket,
        graph,
        kernels,
        arena: 0,
        places: Vec::new(),
        steps,
        programs: Vec::new(),
    };
    let mut items = items(&plan, &phase, target);
    items.sort_by_key(|i| (std::cmp::Reverse(i.bytes), i.from, i.region, i.value));
    let mut placed: Vec<(Item, u64)> = Vec::new();
    for item in items {
        let offset = lowest_fit(&item, &placed, u64::from(target.align));
        plan.arena = plan.arena.max(offset + item.bytes);
        placed.push((item, offset));
    }
    placed.sort_by_key(|(i, _)| (i.region, i.value));
    plan.places = placed
        .into_iter()
        .map(|(i, offset)| Place { region: i.region, value: i.value, offset, bytes: i.bytes })
        .collect();
    plan
}

fn items(plan: &Plan, phase: &[u32], target: &Target) -> Vec<Item> {
    let align = u64::from(target.align);
    let item = |(region, value, from, to): (Option<u32>, ValueId, u32, u32)| {
        let graph = match region {
            None => &plan.graph,
            Some(n) => match &plan.graph.nodes[n as usize].kind {
                yirage_ir::NodeKind::Region(r) => &r.graph,
                yirage_ir::NodeKind::Op(_) => &plan.graph,
            },
        };
        let bytes = target.storage_bytes(graph.ty(value), &plan.bucket).next_multiple_of(align);
        Item { region, value, from, to, bytes }
    };
    lifetimes(plan, phase).into_iter().map(item).collect()
}

fn lowest_fit(item: &Item, placed: &[(Item, u64)], align: u64) -> u64 {
    let mut busy: Vec<(u64, u64)> = placed
        .iter()
        .filter(|(other, _)| other.from <= item.to && item.from <= other.to)
        .map(|(other, offset)| (*offset, offset + other.bytes))
        .collect();
    busy.sort_unstable();
    let mut at = 0;
    for (from, to) in busy {
        if at + item.bytes <= from {
            break;
        }
        at = at.max(to.next_multiple_of(align));
    }
    at
}
