//! One run of a program, as its kernels see it.

use crate::attention_plans::AttentionPlans;
use crate::shared::{CpuContext, MemoryPurpose, MemoryReservation, book};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::memory::{HugeBuf, OutOfMemory, SharedBuf};
use yirage_hal::HalError;
use yirage_ir::{Dim, Dims};

/// The first error of any worker of a run.
#[derive(Default)]
pub(crate) struct Failed(Mutex<Option<HalError>>);

impl Failed {
    /// How the run ended.
    ///
    /// # Errors
    /// That error.
    pub(crate) fn end(self) -> Result<(), HalError> {
        self.0.into_inner().ok().flatten().map_or(Ok(()), Err)
    }
}

/// Bytes that a program wants.
#[derive(Clone, Copy)]
pub(crate) struct ProgramMemorySizes {
    /// For placed values.
    pub(crate) arena: usize,
    /// For what kernels of a phase divide.
    pub(crate) scratch: usize,
    /// For what lives only inside passes over rows, one part a worker.
    pub(crate) workers: usize,
}

/// Memory of programs of which one runs at a time.
pub(crate) struct ProgramMemory {
    pub(super) arena: SharedBuf,
    scratch: SharedBuf,
    workers: SharedBuf,
    shared: Arc<CpuContext>,
    /// Steps that have written here, which whoever was given an output looks at.
    steps: AtomicU64,
    _booked: MemoryReservation,
}

impl ProgramMemory {
    /// Memory of a device.
    ///
    /// # Errors
    /// A device that has none left.
    pub(crate) fn new(shared: &Arc<CpuContext>, wanted: ProgramMemorySizes) -> Result<ProgramMemory, HalError> {
        let held = |bytes| {
            let detail =
                |e: OutOfMemory| HalError::OutOfMemory { pool: "arena", wanted: bytes as u64, detail: e.to_string() };
            HugeBuf::zeroed(bytes).map(HugeBuf::shared).map_err(detail)
        };
        let (arena, scratch, workers) = (held(wanted.arena)?, held(wanted.scratch)?, held(wanted.workers)?);
        let booked = book(shared, MemoryPurpose::Arena, (arena.len() + scratch.len() + workers.len()) as u64);
        let (shared, steps) = (shared.clone(), AtomicU64::new(0));
        Ok(ProgramMemory { arena, scratch, workers, shared, steps, _booked: booked })
    }

    /// Whether it is this device's and has room for so much.
    pub(crate) fn holds(&self, shared: &Arc<CpuContext>, wanted: ProgramMemorySizes) -> bool {
        let room = [(&self.arena, wanted.arena), (&self.scratch, wanted.scratch), (&self.workers, wanted.workers)];
        self.is_of(shared) && room.iter().all(|(held, wanted)| held.len() >= *wanted)
    }

    pub(super) fn is_of(&self, shared: &Arc<CpuContext>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// A step begins to write; its number.
    pub(crate) fn begin_step(&self) -> u64 {
        self.steps.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Steps so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }
}

/// Where the loop of a tiled region is.
#[derive(Clone, Copy, Default)]
pub(crate) struct TileAt {
    /// The block in the grid.
    pub(crate) block: [usize; 3],
    /// The iteration of its loop.
    pub(crate) iteration: usize,
    /// Whether it is the last one.
    pub(crate) last: bool,
    /// Whether the worker has had a block in this run, so that what it keeps from block to block is of this run.
    pub(crate) kept: bool,
}

/// What a run reads and writes.
#[derive(Clone, Copy)]
pub(crate) struct CpuRunContext<'a> {
    pub(crate) isa: Isa,
    pub(crate) dims: &'a Dims,
    pub(crate) attention_plans: &'a AttentionPlans,
    /// The memory of each step input, as [`CpuStepInputs::resolve`](super::step_inputs::CpuStepInputs::resolve) has checked it.
    pub(super) step_inputs: &'a [&'a [u8]],
    pub(super) arena: &'a SharedBuf,
    pub(super) scratch: &'a SharedBuf,
    pub(super) workers: &'a SharedBuf,
    pub(super) worker_bytes: usize,
    /// The worker of a pass over rows, and the first row of the group that it makes.
    pub(super) worker: usize,
    pub(super) group: usize,
    pub(crate) tile: TileAt,
    failed: &'a Failed,
}

impl<'a> CpuRunContext<'a> {
    /// A run of these sizes over memory that holds what the plan wants, so many bytes of it for each worker's passes over
    /// rows.
    pub(crate) fn new(
        isa: Isa,
        dims: &'a Dims,
        cuts: &'a AttentionPlans,
        step_inputs: &'a [&'a [u8]],
        (memory, worker_bytes): (&'a ProgramMemory, usize),
        failed: &'a Failed,
    ) -> CpuRunContext<'a> {
        let ProgramMemory { arena, scratch, workers, .. } = memory;
        let (worker, group, tile) = (0, 0, TileAt::default());
        CpuRunContext {
            isa,
            dims,
            attention_plans: cuts,
            step_inputs,
            arena,
            scratch,
            workers,
            worker_bytes,
            worker,
            group,
            tile,
            failed,
        }
    }

    /// As one worker of a pass over rows sees it while it makes the group that begins with this row.
    pub(crate) fn of_group(&self, worker: usize, group: usize) -> CpuRunContext<'a> {
        CpuRunContext { worker, group, ..*self }
    }

    /// As one worker of a tiled region sees it there.
    pub(crate) fn of_tile(&self, worker: usize, tile: TileAt) -> CpuRunContext<'a> {
        CpuRunContext { worker, group: 0, tile, ..*self }
    }

    /// The size of a dimension.
    pub(crate) fn size(&self, dim: Dim) -> usize {
        dim.get(self.dims)
    }

    /// Keeps the first error of a run.
    pub(crate) fn fail(&self, error: impl ToString) {
        if let Ok(mut failed) = self.failed.0.lock() {
            failed.get_or_insert_with(|| HalError::Device(error.to_string()));
        }
    }
}
