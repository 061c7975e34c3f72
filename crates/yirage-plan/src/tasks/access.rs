//! Which memory each step touches.

use crate::error::PlanError;
use crate::plan::{BufferPlacement, Plan};
use std::collections::HashMap;
use yirage_ir::{ValueId, ValueSource};

/// Bytes of the arena, and the value that lies there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ArenaSpan {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) value: ValueId,
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
    let span = |value: ValueId| {
        let missing = || PlanError(format!("value {} has no place", value.0));
        let place: &&BufferPlacement = places.get(&value).ok_or_else(missing)?;
        Ok(ArenaSpan { from: place.offset, to: place.offset.saturating_add(place.bytes), value })
    };
    let graph = &plan.graph;
    let mut out = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let node = &graph.nodes[step.node as usize];
        let mut a = Access::default();
        for &i in &node.ins {
            match (graph.kv_cache_of(i), graph.value(i).source) {
                (Some(state), _) => a.kv_caches_read.push(state),
                (None, ValueSource::Node { .. }) => a.reads.push(span(i)?),
                _ => {}
            }
        }
        for &o in &node.outs {
            match graph.kv_cache_of(o) {
                Some(state) => a.kv_caches_written.push(state),
                None => a.writes.push(span(o)?),
            }
        }
        a.scratch = plan.kernels[step.kernel as usize].scratch.then_some(step.phase);
        out.push(a);
    }
    Ok(out)
}

impl Access {
    /// Whether two steps must not run at the same time: one writes what the other reads or writes.
    pub(crate) fn conflicts(&self, other: &Access) -> bool {
        let meet =
            |a: &[ArenaSpan], b: &[ArenaSpan]| a.iter().any(|a| b.iter().any(|b| a.from < b.to && b.from < a.to));
        let share = |a: &[ValueId], b: &[ValueId]| a.iter().any(|a| b.contains(a));
        let scratch = matches!((self.scratch, other.scratch), (Some(a), Some(b)) if a != b);
        scratch
            || meet(&self.writes, &other.writes)
            || meet(&self.writes, &other.reads)
            || meet(&self.reads, &other.writes)
            || share(&self.kv_caches_written, &other.kv_caches_written)
            || share(&self.kv_caches_written, &other.kv_caches_read)
            || share(&self.kv_caches_read, &other.kv_caches_written)
    }
}

/// For each step, the earlier steps that must have ended before it begins, ascending.
///
/// # Errors
/// When a value has no place.
pub fn predecessors(plan: &Plan) -> Result<Vec<Vec<u32>>, PlanError> {
    let accesses = accesses(plan)?;
    let of = |j: usize| (0..j).filter(|&i| accesses[i].conflicts(&accesses[j])).map(|i| i as u32).collect();
    Ok((0..accesses.len()).map(of).collect())
}
