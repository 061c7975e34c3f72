//! Which memory each step touches.

use crate::error::PlanError;
use crate::plan::{BufferPlacement, Plan};
use crate::program::Partitioning;
use crate::readers::node_readers;
use std::collections::HashMap;
use yirage_ir::{Dim, Graph, Node, ValueId, ValueSource};

/// Bytes of the arena, and the value that lies there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ArenaSpan {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) value: ValueId,
    /// Of what is touched row by row, how many rows there are: each share touches its own.
    pub(crate) rows: Option<Dim>,
}

/// How much of an earlier step must have ended before a share of a later one begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Extent {
    /// The share of the same rows, where both are divided into as many.
    SameRows,
    /// All of it.
    Whole,
}

/// An earlier step that a step needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predecessor {
    /// The step.
    pub step: u32,
    /// How much of it.
    pub extent: Extent,
}

/// What a step reads and writes.
#[derive(Clone, Default, Debug)]
pub(crate) struct Access {
    pub(crate) reads: Vec<ArenaSpan>,
    pub(crate) writes: Vec<ArenaSpan>,
    pub(crate) kv_caches_read: Vec<ValueId>,
    pub(crate) kv_caches_written: Vec<ValueId>,
    /// The phase in which it uses the scratch memory that its kernel has from the device. Within a phase that memory is
    /// divided; phases use it again.
    pub(crate) scratch: Option<u32>,
}

/// The accesses of every step, in the order of the steps.
pub(crate) fn accesses(plan: &Plan) -> Result<Vec<Access>, PlanError> {
    let places: HashMap<_, _> = plan.placements.iter().map(|p| (p.value, p)).collect();
    let span = |value: ValueId, rows: Option<Dim>| {
        let missing = || PlanError(format!("value {} has no place", value.0));
        let place: &&BufferPlacement = places.get(&value).ok_or_else(missing)?;
        Ok(ArenaSpan { from: place.offset, to: place.offset.saturating_add(place.bytes), value, rows })
    };
    let graph = &plan.graph;
    let mut out = Vec::with_capacity(plan.steps.len());
    for (s, step) in plan.steps.iter().enumerate() {
        let node = &graph.nodes[step.node as usize];
        let mut a = Access::default();
        // What later stages read they read after all of the first; what the last writes is all that leaves the step.
        let by_rows = |stage: Option<(u32, Partitioning)>| {
            stage
                .is_some_and(|(_, partitioning)| partitioning == Partitioning::Rows)
                .then(|| rows(graph, node))
                .flatten()
        };
        let (read, written) = (by_rows(plan.stages(s).next()), by_rows(plan.stages(s).last()));
        for &i in &node.ins {
            match (graph.kv_cache_of(i), graph.value(i).source) {
                (Some(state), _) => a.kv_caches_read.push(state),
                (None, ValueSource::Node { .. }) => {
                    a.reads.push(span(i, read.filter(|_| read_by_rows(graph, node, i)))?)
                }
                _ => {}
            }
        }
        for &o in &node.outs {
            match graph.kv_cache_of(o) {
                Some(state) => a.kv_caches_written.push(state),
                None => a.writes.push(span(o, written.filter(|_| lies_in_rows(graph, o)))?),
            }
        }
        a.scratch = plan.kernels[step.kernel as usize].scratch.then_some(step.phase);
        out.push(a);
    }
    Ok(out)
}

impl Access {
    /// How much of two steps must not run at the same time, where one writes what the other reads or writes.
    pub(crate) fn conflict(&self, other: &Access) -> Option<Extent> {
        let meet =
            |a: &[ArenaSpan], b: &[ArenaSpan]| a.iter().any(|a| b.iter().any(|b| a.from < b.to && b.from < a.to));
        let of_pair = |a: &ArenaSpan, b: &ArenaSpan| {
            let same = a.value == b.value && a.rows.is_some() && a.rows == b.rows;
            (a.from < b.to && b.from < a.to).then_some(if same { Extent::SameRows } else { Extent::Whole })
        };
        // The writes of one and the reads of the other.
        let flow = |writes: &[ArenaSpan], reads: &[ArenaSpan]| {
            writes.iter().flat_map(|w| reads.iter().filter_map(move |r| of_pair(w, r))).max()
        };
        let share = |a: &[ValueId], b: &[ValueId]| a.iter().any(|a| b.contains(a));
        let scratch = matches!((self.scratch, other.scratch), (Some(a), Some(b)) if a != b);
        let whole = scratch
            || meet(&self.writes, &other.writes)
            || share(&self.kv_caches_written, &other.kv_caches_written)
            || share(&self.kv_caches_written, &other.kv_caches_read)
            || share(&self.kv_caches_read, &other.kv_caches_written);
        if whole {
            return Some(Extent::Whole);
        }
        flow(&self.writes, &other.reads).max(flow(&other.writes, &self.reads))
    }
}

/// The rows that a node which is divided by rows runs over; none where what it touches so disagrees, and of a node that
/// writes a cache, whose rows lie where the step says.
fn rows(graph: &Graph, node: &Node) -> Option<Dim> {
    let mut all = node
        .outs
        .iter()
        .filter(|&&o| lies_in_rows(graph, o))
        .chain(node.ins.iter().filter(|&&i| graph.kv_cache_of(i).is_none() && read_by_rows(graph, node, i)));
    let first = |id: &ValueId| graph.ty(*id).shape.first().copied();
    let rows = first(all.next()?)?;
    let alike = all.all(|id| first(id) == Some(rows)) && node.outs.iter().all(|&o| graph.kv_cache_of(o).is_none());
    alike.then_some(rows)
}

/// Whether the rows of a value lie one after the other. Layouts of activations may weave them.
fn lies_in_rows(graph: &Graph, id: ValueId) -> bool {
    let ty = graph.ty(id);
    ty.activation_format.is_none() && ty.shape.len() > 1 && matches!(ty.shape[0], Dim::Sym(_))
}

/// Whether all ops of a node that read a value read it row by row.
fn read_by_rows(graph: &Graph, node: &Node, id: ValueId) -> bool {
    let ty = graph.ty(id);
    lies_in_rows(graph, id) && node_readers(node, id).iter().all(|&(op, input)| !op.whole(input, ty))
}

/// For each step, the earlier steps that it needs, ascending.
///
/// # Errors
/// When a value has no place.
pub fn predecessors(plan: &Plan) -> Result<Vec<Vec<Predecessor>>, PlanError> {
    let accesses = accesses(plan)?;
    let of = |j: usize| {
        let conflict = |i: usize| Some(Predecessor { step: i as u32, extent: accesses[i].conflict(&accesses[j])? });
        (0..j).filter_map(conflict).collect()
    };
    Ok((0..accesses.len()).map(of).collect())
}
