//! One run of a program, as its kernels see it.

use crate::cuts::Cuts;
use crate::isa::Isa;
use crate::memory::HugeBuf;
use std::sync::Mutex;
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

/// Memory of a program.
pub(crate) struct Memory {
    /// Placed values.
    pub(crate) arena: HugeBuf,
    /// What kernels of a phase divide.
    pub(crate) scratch: HugeBuf,
    /// What lives only inside passes over rows, one part a worker.
    pub(crate) workers: HugeBuf,
    /// Bytes of such a part.
    pub(crate) worker_bytes: usize,
}

/// What a run reads and writes.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) isa: Isa,
    pub(crate) dims: &'a Dims,
    pub(crate) cuts: &'a Cuts,
    /// The memory of each slot, as [`Slots::bytes`](super::Slots::bytes) has checked it.
    pub(super) slots: &'a [&'a [u8]],
    pub(super) arena: &'a HugeBuf,
    pub(super) scratch: &'a HugeBuf,
    pub(super) workers: &'a HugeBuf,
    pub(super) worker_bytes: usize,
    /// The worker of a pass over rows, and the first row of the group that it makes.
    pub(super) worker: usize,
    pub(super) group: usize,
    failed: &'a Failed,
}

impl<'a> Run<'a> {
    /// A run of these sizes over memory that the plan was placed in.
    pub(crate) fn new(
        isa: Isa,
        dims: &'a Dims,
        cuts: &'a Cuts,
        slots: &'a [&'a [u8]],
        memory: &'a Memory,
        failed: &'a Failed,
    ) -> Run<'a> {
        let Memory { arena, scratch, workers, worker_bytes } = memory;
        let (worker_bytes, worker, group) = (*worker_bytes, 0, 0);
        Run { isa, dims, cuts, slots, arena, scratch, workers, worker_bytes, worker, group, failed }
    }

    /// As one worker of a pass over rows sees it while it makes the group that begins with this row.
    pub(crate) fn of_group(&self, worker: usize, group: usize) -> Run<'a> {
        Run { worker, group, ..*self }
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
