//! Groups nodes into regions and phases.
//!
//! Phases alternate: all row-wise ops that are ready, with everything row-wise that follows from them, become one
//! region (one pass over the tokens, no waiting between the ops); then all other nodes that are ready run side by
//! side, products of the same input as one region, whatever the formats of their weights. Maps and views of a product's
//! result join it where all else that they read is there already.

use crate::CompileOptions;
use crate::decision::{Decision, Decisions};
use crate::epilogue::Epilogues;
use crate::error::CompileError;
use crate::group;
use crate::names;
use crate::readers::{ValueUses, is_there};
use crate::rebuild::Rebuild;
use std::collections::{HashMap, HashSet};
use yirage_ir::region::{MAX_REGION_OPS, is_weight_matmul, row_dim};
use yirage_ir::{Dim, Graph, Node, NodeKind, Op, RegionKind, Type, ValueId, ValueSource};
use yirage_plan::{PlanStep, Target};

pub(crate) fn run(
    graph: &Graph,
    target: &Target,
    options: &CompileOptions,
    decisions: &mut Decisions,
) -> Result<Graph, CompileError> {
    if !options.fuse {
        decisions.tell(Decision::fusion_is_off);
        return Ok(graph.clone());
    }
    let mut r = Rebuild::new(graph, |_| true)?;
    let readers = ValueUses::of(graph);
    for group in groups(graph, &Epilogues::new(graph, &readers, target), decisions) {
        let runs = target.runs_regions(kind_of(graph, &group));
        if let Some(norm) = norm_before(graph, &group) {
            decisions.tell(|| norm_stays(graph, norm, group[0]));
        }
        if group.len() > 1 {
            decisions.tell(|| decision(graph, &group, runs));
        }
        if runs {
            let parts = bound_apart(graph, &group, &readers, target, decisions);
            parts.iter().try_for_each(|part| emit(graph, part, &readers, &mut r))?;
        } else {
            group.iter().try_for_each(|&n| emit(graph, &[n], &readers, &mut r))?;
        }
    }
    Ok(r.finish())
}

/// The steps of a fused graph: a node's phase is one past the latest of its producers', and phases follow the order
/// of the graph, so that a row-wise region and the nodes beside it share a phase only if independent.
pub(crate) fn steps(graph: &Graph, kernels: &[u32]) -> Vec<PlanStep> {
    let mut phases: Vec<u32> = Vec::with_capacity(graph.nodes.len());
    let mut floor = 0;
    for node in &graph.nodes {
        let after = node.ins.iter().filter_map(|&i| match graph.value(i).source {
            ValueSource::Node { node, .. } => Some(phases[node as usize] + 1),
            _ => None,
        });
        floor = after.fold(floor, u32::max);
        phases.push(floor);
    }
    let steps = phases.iter().zip(kernels).enumerate();
    steps.map(|(n, (&phase, &kernel))| PlanStep { node: n as u32, kernel, phase }).collect()
}

/// Node indices that run together, in an order in which they can run.
fn groups(graph: &Graph, epilogues: &Epilogues<'_>, decisions: &mut Decisions) -> Vec<Vec<usize>> {
    let mut done = vec![false; graph.nodes.len()];
    let mut left = graph.nodes.len();
    let mut out = Vec::new();
    while left > 0 {
        let mut batch = ready_rows(graph, &done, decisions);
        if batch.is_empty() {
            batch = ready_matmuls(graph, &done, decisions);
            batch.iter_mut().for_each(|group| epilogues.join(group, &done, decisions));
        }
        for group in &batch {
            group.iter().for_each(|&n| done[n] = true);
            left -= group.len();
        }
        out.extend(batch);
    }
    out
}

fn is_ready(graph: &Graph, n: usize, done: &[bool]) -> bool {
    graph.nodes[n].ins.iter().all(|&i| is_there(graph, i, done))
}

/// Whether a row of what the node makes may depend on all of input `at`.
fn reads_whole(node: &Node, at: usize, ty: &Type) -> bool {
    matches!(&node.kind, NodeKind::Op(op) if op.whole(at, ty))
}

/// Ready row-wise nodes and all that follow from them row by row, one group a token dimension.
fn ready_rows(graph: &Graph, done: &[bool], decisions: &mut Decisions) -> Vec<Vec<usize>> {
    let mut done = done.to_vec();
    let mut groups: Vec<(Option<Dim>, Vec<usize>)> = Vec::new();
    let mut dim_of: HashMap<usize, Option<Dim>> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        if done[n] || !is_ready(graph, n, &done) {
            continue;
        }
        let dim = row_dim(graph, node);
        if dim.is_none() {
            continue;
        }
        // A producer fused in this round must run over the same rows, and what it makes be read row by row.
        let crosses = node.ins.iter().enumerate().find_map(|(at, &i)| match graph.value(i).source {
            ValueSource::Node { node: maker, .. } => match dim_of.get(&(maker as usize)) {
                Some(d) if *d != dim => Some((i, Crossing::Rows)),
                Some(_) if reads_whole(node, at, graph.ty(i)) && graph.kv_cache_of(i).is_none() => {
                    Some((i, Crossing::Whole))
                }
                _ => None,
            },
            _ => None,
        });
        if let Some((value, crossing)) = crosses {
            decisions.tell(|| crossing.decision(graph, n, value));
            continue;
        }
        match groups.iter_mut().find(|(d, _)| *d == dim) {
            Some((_, members)) if members.len() == MAX_REGION_OPS => {
                decisions.tell(|| too_many(graph, n));
                continue;
            }
            Some((_, members)) => members.push(n),
            None => groups.push((dim, vec![n])),
        }
        done[n] = true;
        dim_of.insert(n, dim);
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// Why a node is not in the pass over rows that makes what it reads.
#[derive(Clone, Copy)]
enum Crossing {
    /// It runs over other rows.
    Rows,
    /// It may read all rows.
    Whole,
}

impl Crossing {
    fn decision(self, graph: &Graph, n: usize, value: ValueId) -> Decision {
        let read = names::quoted(graph, value);
        let what = format!("one pass over rows with {read}");
        let why = match self {
            Crossing::Rows => format!("it has other rows than {read} of {}", graph.ty(value)),
            Crossing::Whole => format!("a row of it may depend on all of {read}"),
        };
        Decision::refused(names::of_node(graph, n), what, why)
    }
}

fn too_many(graph: &Graph, n: usize) -> Decision {
    let why = format!("a region has {MAX_REGION_OPS} ops at most");
    Decision::refused(names::of_node(graph, n), "one region with what is ready beside it", why)
}

/// Ready nodes that are not row-wise, products of one input together.
fn ready_matmuls(graph: &Graph, done: &[bool], decisions: &mut Decisions) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        if done[n] || !is_ready(graph, n, done) || row_dim(graph, node).is_some() {
            continue;
        }
        let alike = |g: &[usize]| {
            let other = &graph.nodes[g[0]];
            is_weight_matmul(node) && other.name() == node.name() && other.ins[0] == node.ins[0]
        };
        if groups.iter().any(|g| alike(g) && g.len() == MAX_REGION_OPS) {
            decisions.tell(|| too_many(graph, n));
        }
        match groups.iter_mut().find(|g| alike(g) && g.len() < MAX_REGION_OPS) {
            Some(group) => group.push(n),
            None => groups.push(vec![n]),
        }
    }
    groups
}

/// The kind of region that nodes which run together are.
fn kind_of(graph: &Graph, members: &[usize]) -> RegionKind {
    if is_weight_matmul(&graph.nodes[members[0]]) { RegionKind::MatmulGroup } else { RegionKind::Rows }
}

fn decision(graph: &Graph, members: &[usize], runs: bool) -> Decision {
    let kind = kind_of(graph, members);
    let what = format!("a region `{}` of {} nodes", kind.name(), members.len());
    let values = names::of_nodes(graph, members);
    if !runs {
        return Decision::refused(values, what, "no kernel of the target runs regions of this kind");
    }
    let first = &graph.nodes[members[0]];
    let why = match row_dim(graph, first) {
        Some(dim) if kind == RegionKind::Rows => {
            format!("all are ready together, and a row of {dim} needs its own row alone")
        }
        _ => format!("products of {}, with what follows from each alone", names::quoted(graph, first.ins[0])),
    };
    Decision::done(values, what, why)
}

/// The norm whose rows products multiply.
fn norm_before(graph: &Graph, members: &[usize]) -> Option<usize> {
    let product = &graph.nodes[members[0]];
    let ValueSource::Node { node, .. } = graph.value(*product.ins.first()?).source else { return None };
    let is_norm = |node: &Node| matches!(&node.kind, NodeKind::Op(Op::RmsNorm(_) | Op::LayerNorm(_)));
    (is_weight_matmul(product) && is_norm(&graph.nodes[node as usize])).then_some(node as usize)
}

/// Why a norm is a pass of its own.
fn norm_stays(graph: &Graph, norm: usize, product: usize) -> Decision {
    let [rows, weight] = [graph.ty(graph.nodes[norm].outs[0]), graph.ty(graph.nodes[product].ins[1])];
    let what = format!("joining the product {}", names::listed(&names::of_node(graph, product)));
    let why = format!(
        "each panel of {weight} reads the rows, so they are normalised once for all and written as {rows}, which is little \
         beside the weight; behind the product the scale of a row would round otherwise"
    );
    Decision::refused(names::of_node(graph, norm), what, why)
}

fn emit(graph: &Graph, members: &[usize], readers: &ValueUses, r: &mut Rebuild) -> Result<(), CompileError> {
    if let [n] = members {
        let ins: Vec<ValueId> = graph.nodes[*n].ins.iter().map(|&i| r.get(i)).collect();
        return Ok(r.copy(*n, &ins)?);
    }
    let outs: Vec<ValueId> = results(graph, members, readers).collect();
    group::emit(graph, members, &outs, kind_of(graph, members), r)
}

/// What nodes that run together leave for others.
fn results<'a>(graph: &'a Graph, members: &'a [usize], readers: &'a ValueUses) -> impl Iterator<Item = ValueId> + 'a {
    let made = members.iter().flat_map(|&n| &graph.nodes[n].outs).copied();
    made.filter(|&id| readers.is_output(id) || readers.all(id).iter().any(|n| !members.contains(n)))
}

/// A group as one, or as several in their order where the target's kernels are not bound to so many values.
fn bound_apart(
    graph: &Graph,
    group: &[usize],
    readers: &ValueUses,
    target: &Target,
    decisions: &mut Decisions,
) -> Vec<Vec<usize>> {
    let fits =
        |part: &[usize]| target.limits.bindings.is_none_or(|most| bindings(graph, part, readers) <= most as usize);
    if group.len() == 1 || fits(group) {
        return vec![group.to_vec()];
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    // What follows a product is no group of its own kind without it.
    let whole_rows = kind_of(graph, group) == RegionKind::Rows;
    for &n in group {
        let joined = parts.last().map(|part| [part.as_slice(), &[n]].concat());
        match joined.filter(|joined| whole_rows && fits(joined)) {
            Some(joined) => parts.splice(parts.len() - 1.., [joined]).for_each(drop),
            None => parts.push(vec![n]),
        }
    }
    decisions.tell(|| {
        let (got, most) = (bindings(graph, group, readers), target.limits.bindings.unwrap_or(u32::MAX));
        let why =
            format!("it is bound to {got} values, a kernel of the target to {most} at most: {} parts", parts.len());
        Decision::refused(names::of_nodes(graph, group), "one region", why)
    });
    parts
}

/// The values that a kernel of these nodes is bound to, with the sizes of the step.
fn bindings(graph: &Graph, members: &[usize], readers: &ValueUses) -> usize {
    let made: HashSet<ValueId> = members.iter().flat_map(|&n| &graph.nodes[n].outs).copied().collect();
    let read = members.iter().flat_map(|&n| &graph.nodes[n].ins).copied().filter(|id| !made.contains(id));
    let touched = read.chain(results(graph, members, readers));
    1 + touched.map(|id| graph.kv_cache_of(id).unwrap_or(id)).collect::<HashSet<_>>().len()
}
