//! Plans with one of their values changed.

use yirage_ir::rng::Rng;
use yirage_ir::{Dim, Format, Graph, NodeKind, Region, RegionKind, Sym, ValueId, ValueSource};
use yirage_plan::{Partitioning, Plan, Precision, Stage, StageCondition, Task, TaskPartition, Wait};

/// Changes something, and says what.
pub(crate) fn spoil(plan: &mut Plan, rng: &mut Rng) -> &'static str {
    type Change = fn(&mut Plan, &mut Rng) -> Option<()>;
    const CHANGES: [(&str, Change); 12] = [
        ("bucket", bucket),
        ("arena", arena),
        ("place", mutate_placement),
        ("places", mutate_placements),
        ("step", step),
        ("kernel", kernel),
        ("task", task),
        ("queue", queue),
        ("weight", weight),
        ("node", node),
        ("value", value),
        ("rest", rest),
    ];
    let (name, change) = CHANGES[rng.index(CHANGES.len())];
    // A plan without such a thing stays as it is.
    let _ = change(plan, rng);
    name
}

fn pick<'a, T>(list: &'a mut [T], rng: &mut Rng) -> Option<&'a mut T> {
    let n = list.len();
    if n == 0 { None } else { list.get_mut(rng.index(n)) }
}

/// Another number: a neighbour, a double, a bound.
fn other(n: u64, rng: &mut Rng) -> u64 {
    const BOUNDS: [u64; 7] = [0, 1, 64, 1 << 31, u32::MAX as u64, 1 << 48, u64::MAX];
    match rng.index(6) {
        0 => n.wrapping_add(1),
        1 => n.wrapping_sub(1),
        2 => n.wrapping_add(64),
        3 => n.wrapping_sub(64),
        4 => n.wrapping_mul(2),
        _ => BOUNDS[rng.index(BOUNDS.len())],
    }
}

fn other32(n: u32, rng: &mut Rng) -> u32 {
    other(n.into(), rng) as u32
}

fn bucket(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    let sym = Sym::ALL[rng.index(4)];
    plan.bucket.set(sym, other32(plan.bucket.get(sym), rng));
    Some(())
}

fn arena(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    plan.arena = other(plan.arena, rng);
    Some(())
}

fn mutate_placement(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    let place = pick(&mut plan.placements, rng)?;
    match rng.index(3) {
        0 => place.bytes = other(place.bytes, rng),
        1 => place.value = ValueId(other32(place.value.0, rng)),
        _ => place.offset = other(place.offset, rng),
    }
    Some(())
}

fn mutate_placements(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    let n = plan.placements.len();
    let (a, b) = (rng.index(n.max(1)), rng.index(n.max(1)));
    let (first, second) = (plan.placements.get(a)?.clone(), plan.placements.get(b)?.clone());
    match rng.index(4) {
        0 => drop(plan.placements.remove(a)),
        1 => plan.placements.push(first),
        2 => plan.placements[a].offset = second.offset,
        _ => (plan.placements[a].offset, plan.placements[b].offset) = (second.offset, first.offset),
    }
    Some(())
}

fn step(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    let n = plan.steps.len();
    let (a, b) = (rng.index(n.max(1)), rng.index(n.max(1)));
    let step = plan.steps.get_mut(a)?;
    match rng.index(7) {
        0 => step.node = other32(step.node, rng),
        1 => step.kernel = other32(step.kernel, rng),
        2 => step.phase = other32(step.phase, rng),
        3 => plan.steps.swap(a, b),
        4 => plan.steps.iter_mut().for_each(|s| s.phase = s.phase.saturating_sub(1)),
        5 => plan.steps.insert(b, plan.steps[a].clone()),
        _ => drop(plan.steps.remove(a)),
    }
    Some(())
}

fn kernel(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    let name = plan.kernels.get(rng.index(plan.kernels.len().max(1)))?.name.clone();
    let kernel = pick(&mut plan.kernels, rng)?;
    match rng.index(5) {
        0 => kernel.name = name,
        1 => kernel.variant.push('x'),
        2 => kernel.scratch = !kernel.scratch,
        3 => kernel.stages.push(Stage { partitioning: Partitioning::WorkQueue, when: StageCondition::NoKvCache }),
        _ => kernel.stages.truncate(1),
    }
    Some(())
}

fn task(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    let program = pick(&mut plan.programs, rng)?;
    let counters = program.counters;
    let task = pick(&mut program.tasks, rng)?;
    let Task { step, stage, partition: part, waits, signals } = task;
    match (rng.index(8), pick(waits, rng)) {
        (0, _) => *step = other32(*step, rng),
        (1, _) => *stage = other32(*stage, rng),
        (2, _) => *signals = other32(*signals, rng),
        (3, _) => {
            *part = if *part == TaskPartition::WorkQueue {
                TaskPartition::Static { index: 0, of: 1 }
            } else {
                TaskPartition::WorkQueue
            }
        }
        (4, Some(wait)) => wait.at_least = other32(wait.at_least, rng),
        (5, Some(wait)) => wait.counter = other32(wait.counter, rng),
        (6, _) => drop(waits.pop()),
        _ => {
            waits.push(Wait { counter: rng.index(counters.max(1) as usize) as u32, at_least: 1 + rng.index(3) as u32 })
        }
    }
    Some(())
}

fn queue(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    let program = pick(&mut plan.programs, rng)?;
    let queues = program.queues.len();
    match rng.index(6) {
        0 => program.counters = other32(program.counters, rng).min(1 << 24),
        1 => program.queues.push(Vec::new()),
        2 => program.queues.swap(0, queues - 1),
        3 => drop(program.queues.pop()),
        4 => {
            // A task moves to another worker's queue, at its place in the order.
            let task = program.queues[rng.index(queues)].pop()?;
            let to = &mut program.queues[rng.index(queues)];
            to.push(task);
            to.sort_unstable();
        }
        _ => pick(&mut program.queues, rng)?.reverse(),
    }
    Some(())
}

fn weight(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    let entry = pick(&mut plan.weights.entries, rng)?;
    match rng.index(5) {
        0 => entry.layout = "rows".into(),
        1 => entry.groups = other32(entry.groups, rng),
        2 => entry.name.push('x'),
        3 => entry.ty.dtype = Format::ALL[rng.index(Format::ALL.len())].into(),
        _ => drop(plan.weights.entries.pop()),
    }
    Some(())
}

/// The graph, or the graph of one of its regions.
fn graph<'a>(plan: &'a mut Plan, rng: &mut Rng) -> &'a mut Graph {
    let regions: Vec<usize> = (plan.graph.nodes.iter().enumerate())
        .filter(|(_, n)| matches!(n.kind, NodeKind::Region(_)))
        .map(|(n, _)| n)
        .collect();
    if regions.is_empty() || rng.index(2) == 0 {
        return &mut plan.graph;
    }
    match &mut plan.graph.nodes[regions[rng.index(regions.len())]].kind {
        NodeKind::Region(region) => &mut region.graph,
        NodeKind::Op(_) => unreachable!("only regions are listed"),
    }
}

fn node(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    let graph = graph(plan, rng);
    let (values, nodes) = (graph.values.len(), graph.nodes.len());
    let any = |rng: &mut Rng| ValueId(rng.index(values + 1) as u32);
    let (n, copy) = (rng.index(nodes.max(1)), graph.clone());
    let node = graph.nodes.get_mut(n)?;
    match rng.index(9) {
        0 => *pick(&mut node.ins, rng)? = any(rng),
        1 => *pick(&mut node.outs, rng)? = any(rng),
        2 => drop(node.ins.pop()),
        3 => drop(node.outs.pop()),
        4 => node.ins.reverse(),
        5 => graph.outputs.push(any(rng)),
        6 => graph.nodes.swap(n, nodes - 1),
        7 => node.kind = NodeKind::Region(Box::new(Region::new(RegionKind::Rows, copy))),
        _ => {
            let NodeKind::Region(region) = &mut node.kind else { return None };
            region.kind = RegionKind::ALL[rng.index(RegionKind::ALL.len())];
        }
    }
    Some(())
}

fn value(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    let graph = graph(plan, rng);
    let v = pick(&mut graph.values, rng)?;
    match rng.index(6) {
        0 => v.ty.dtype = Format::ALL[rng.index(3)].into(),
        1 => v.ty.strides = Some(vec![0; v.ty.shape.len()]),
        2 => v.source = [ValueSource::StepInput, ValueSource::Weight, ValueSource::KvCache][rng.index(3)],
        3 => v.source = ValueSource::Node { node: rng.index(9) as u32, output: rng.index(2) as u32 },
        4 => *pick(&mut v.ty.shape, rng)? = Dim::Sym(Sym::ALL[rng.index(4)]),
        _ => {
            let dim = pick(&mut v.ty.shape, rng)?;
            *dim = Dim::Const(other32(dim.as_const().unwrap_or(1) as u32, rng));
        }
    }
    Some(())
}

fn rest(plan: &mut Plan, rng: &mut Rng) -> Option<()> {
    match rng.index(5) {
        0 => plan.target.push('0'),
        1 => drop(plan.programs.pop()),
        2 => plan.programs.reverse(),
        3 => plan.programs.truncate(0),
        _ => {
            let fast = plan.precision == Precision::Fast;
            plan.precision = if fast { Precision::Exact } else { Precision::Fast };
        }
    }
    Some(())
}
