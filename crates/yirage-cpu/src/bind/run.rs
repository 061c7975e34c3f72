//! One run of a program, as its kernels see it.

use crate::cuts::Cuts;
use crate::isa::Isa;
use crate::memory::HugeBuf;
use std::sync::Mutex;
use yirage_hal::{HalError, Slot, Values};
use yirage_ir::{Dim, Dims, Type};

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
    /// The words of each slot, as [`slots`] has checked them.
    pub(super) slots: &'a [&'a [i32]],
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
        slots: &'a [&'a [i32]],
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

/// The words of each slot, as many as its type says. Another program's output is read where it lies.
///
/// # Errors
/// [`HalError::Step`] for another number of slots or of words, and sizes that the plan was not made for.
pub(crate) fn slots<'a>(
    types: &[(String, Type)],
    bucket: &Dims,
    dims: &Dims,
    given: &[Slot<'a>],
) -> Result<Vec<&'a [i32]>, HalError> {
    if let Some(sym) = dims.exceeds(bucket) {
        let (got, max) = (dims.get(sym), bucket.get(sym));
        return Err(HalError::Step(format!("{} = {got} exceeds the {max} that the plan was made for", sym.name())));
    }
    if given.len() != types.len() {
        return Err(HalError::Step(format!("{} slots are given, the plan has {}", given.len(), types.len())));
    }
    let checked = |((name, ty), slot): (&(String, Type), &Slot<'a>)| {
        let words = words(slot)?;
        if words.len() != ty.held(dims) {
            let (got, want) = (words.len(), ty.held(dims));
            return Err(HalError::Step(format!("slot `{name}` has {got} words, {ty} needs {want}")));
        }
        Ok(words)
    };
    types.iter().zip(given).map(checked).collect()
}

fn words<'a>(slot: &Slot<'a>) -> Result<&'a [i32], HalError> {
    match *slot {
        Slot::Words(words) => Ok(words),
        Slot::Output { of, index, dims } => match of.output(index, &dims)? {
            Values::I32(words) => Ok(words),
            // SAFETY: both are plain 32-bit words of the same size and alignment.
            Values::F32(floats) => Ok(unsafe { std::slice::from_raw_parts(floats.as_ptr().cast(), floats.len()) }),
        },
    }
}
