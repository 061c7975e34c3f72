//! What lives only inside a pass over rows: it lies in the memory of the worker that makes it, a group of rows at a time.

use super::run::CpuRunContext;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use yirage_cpu_kernels::memory::{SharedBuf, Supply};
use yirage_hal::HalError;
use yirage_ir::{DType, Dims, Graph, Type, ValueId, ValueSource};
use yirage_plan::{MemoryRequest, plan_memory};

/// Rows that pass through all ops of a pass together: they stay in the second-level cache.
pub(crate) const GROUP: usize = 16;

/// What values in a worker's memory begin at a multiple of, in bytes.
pub(super) const ALIGN: u64 = 64;

/// Rows of the group that a worker makes.
#[derive(Clone)]
pub(super) struct WorkerSlice {
    /// In each worker's memory.
    bytes: Range<usize>,
    /// Bytes of a row.
    row: usize,
    /// On a guarded device: memory of its own for each worker.
    own: Vec<Arc<SharedBuf>>,
}

impl WorkerSlice {
    /// Bytes in each worker's memory that do not depend on rows.
    ///
    /// # Errors
    /// A guarded device that has no memory left.
    pub(super) fn fixed(bytes: Range<usize>, workers: usize, supply: Supply) -> Result<WorkerSlice, HalError> {
        let own = match supply {
            Supply::Plain => Vec::new(),
            Supply::Guarded => own(supply, workers, bytes.len())?,
        };
        Ok(WorkerSlice { bytes, row: 0, own })
    }

    /// Its bytes in each worker's memory.
    pub(super) fn bytes(&self) -> &Range<usize> {
        &self.bytes
    }

    /// Where the first of all rows would lie, so that those of the group lie where the worker keeps them.
    pub(super) fn first(&self, run: &CpuRunContext<'_>) -> *mut u8 {
        let group = match self.own.get(run.worker) {
            Some(own) => own.first(),
            // Inside: each worker's memory is as large as the end of all spots.
            None => run.workers.first().wrapping_add(run.worker * run.worker_bytes + self.bytes.start),
        };
        group.wrapping_sub(run.group * self.row)
    }
}

/// The inner values of a pass, and where the last of them ends.
#[derive(Default)]
pub(super) struct GroupAllocation {
    pub(super) spots: HashMap<ValueId, WorkerSlice>,
    pub(super) end: usize,
}

/// Places what lives only inside the graph of a pass.
///
/// # Errors
/// A value of which rows do not lie by themselves, and a guarded device that has no memory left.
pub(super) fn allocate(graph: &Graph, workers: usize, supply: Supply) -> Result<GroupAllocation, HalError> {
    let (mut values, mut requests) = (Vec::new(), Vec::new());
    for (n, node) in graph.nodes.iter().enumerate() {
        for &id in node.outs.iter().filter(|id| stays(graph, **id)) {
            let row = row_bytes(graph, id)?;
            let bytes = (row as u64).checked_mul(GROUP as u64).and_then(|bytes| bytes.checked_next_multiple_of(ALIGN));
            let last = graph.nodes.iter().rposition(|node| node.ins.contains(&id)).unwrap_or(n);
            requests.push(MemoryRequest { bytes: bytes.unwrap_or(u64::MAX), from: n as u32, to: last as u32 });
            values.push((id, row));
        }
    }
    let too_large = || HalError::Load("what stays with a worker takes more bytes than there are".into());
    let layout = plan_memory(&requests, ALIGN).ok_or_else(too_large)?;
    let mut inner =
        GroupAllocation { spots: HashMap::new(), end: usize::try_from(layout.end).map_err(|_| too_large())? };
    for (((id, row), request), offset) in values.into_iter().zip(&requests).zip(layout.offsets) {
        // Inside of `end`, which is a number.
        let bytes = offset as usize..(offset + request.bytes) as usize;
        let own = match supply {
            Supply::Plain => Vec::new(),
            Supply::Guarded => own(supply, workers, row.saturating_mul(GROUP))?,
        };
        inner.spots.insert(id, WorkerSlice { bytes, row, own });
    }
    Ok(inner)
}

/// Whether a value that an op makes is read inside alone.
fn stays(graph: &Graph, id: ValueId) -> bool {
    let made = matches!(graph.value(id).source, ValueSource::Node { .. });
    made && graph.kv_cache_of(id).is_none() && !graph.outputs.contains(&id)
}

fn row_bytes(graph: &Graph, id: ValueId) -> Result<usize, HalError> {
    let Type { dtype, shape, .. } = graph.ty(id);
    match (dtype, shape.split_first()) {
        (DType::Stored(_) | DType::I32 | DType::U32, Some((_, row))) => {
            let row = Type::new(*dtype, row.to_vec());
            Ok(row.bytes(&Dims::default()))
        }
        _ => Err(HalError::Load(format!("`{}` of {} does not stay with a worker", graph.value(id).name, graph.ty(id)))),
    }
}

fn own(supply: Supply, workers: usize, bytes: usize) -> Result<Vec<Arc<SharedBuf>>, HalError> {
    let buffer = |_| {
        let made = supply.zeroed(bytes, 4);
        made.map(|buf| Arc::new(buf.shared())).map_err(|e| HalError::OutOfMemory {
            pool: "arena",
            wanted: bytes as u64,
            detail: e.to_string(),
        })
    };
    (0..workers).map(buffer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_no_more_gives_its_bytes_to_what_follows() {
        let body = r#"input %x: f32[Tokens, 40]
            %a = map{expr="silu(x0)"}(%x): f32[Tokens, 40]
            %b = map{expr="relu(x0)"}(%a): f32[Tokens, 40]
            %c = map{expr="tanh(x0)"}(%b): f32[Tokens, 40]
            %d = map{expr="add(x0, x1)"}(%b, %c): f32[Tokens, 40]
            output %d"#;
        let graph = yirage_ir::text::parse(&format!("graph g {{ {body} }}")).unwrap();
        let inner = allocate(&graph, 2, Supply::Plain).unwrap();
        let bytes = |name: &str| {
            let id = (0..graph.values.len() as u32).map(ValueId).find(|&id| graph.value(id).name == name).unwrap();
            inner.spots.get(&id).map(|spot| spot.bytes.clone())
        };
        let each = 40 * 4 * GROUP;
        assert_eq!(bytes("a"), Some(0..each));
        assert_eq!(bytes("b"), Some(each..2 * each));
        assert_eq!(bytes("c"), Some(0..each), "a is read no more");
        assert_eq!((bytes("d"), inner.end), (None, 2 * each), "what leaves has a place in the arena");
    }
}
