//! What kernels write: in the arena, or with the worker what lives only inside a pass over rows.

use super::arena_slice::ArenaSlice;
use super::float::Word;
use super::group::WorkerSlice;
use super::location::Moves;
use super::run::CpuRunContext;
use std::marker::PhantomData;
use std::ops::Range;
use yirage_cpu_kernels::rows::Dst;
use yirage_ir::Dim;

/// Memory of a value that a kernel writes.
#[derive(Clone)]
pub(super) enum OutBase {
    /// In the arena.
    Arena(ArenaSlice),
    /// With the worker.
    Group(WorkerSlice),
    /// A tile of what lies in the arena, of elements of so many bytes.
    Tile(ArenaSlice, Moves, usize),
}

impl OutBase {
    pub(super) fn first(&self, run: &CpuRunContext<'_>) -> *mut u8 {
        match self {
            OutBase::Arena(spot) => spot.first(run.arena),
            OutBase::Group(spot) => spot.first(run),
            // Inside: `yirage_ir` has checked that all tiles are parts of the value.
            OutBase::Tile(spot, moves, bytes) => spot.first(run.arena).wrapping_add(moves.to(run.tile) * bytes),
        }
    }
}

/// Rows of words that a kernel writes; a value of one dimension has rows of one element.
#[derive(Clone)]
pub(crate) struct OutputRows<T> {
    pub(super) base: OutBase,
    pub(super) rows: Dim,
    pub(super) width: usize,
    pub(super) of: PhantomData<T>,
}

impl<T: Word> OutputRows<T> {
    /// Elements of a row.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> Dim {
        self.rows
    }

    /// The first element; rows follow each other without gaps. `yirage_plan::VerifiedPlan` proves that all of them lie inside
    /// the arena.
    pub(crate) fn first(&self, run: &CpuRunContext<'_>) -> *mut T {
        self.base.first(run).cast()
    }

    /// Some of the rows.
    ///
    /// # Safety
    /// The rows exist in this run, and nobody else uses them meanwhile.
    #[allow(clippy::mut_from_ref)] // the arena is shared by address, its rows are not
    pub(crate) unsafe fn some<'a>(&self, run: &'a CpuRunContext<'_>, rows: Range<usize>) -> &'a mut [T] {
        // SAFETY: the value is whole in the arena (`OutputRows::first`); the caller gives the rest.
        unsafe {
            let first = self.first(run).wrapping_add(rows.start * self.width);
            std::slice::from_raw_parts_mut(first, rows.len() * self.width)
        }
    }
}

impl OutputRows<f32> {
    /// The rows.
    pub(crate) fn dst(&self, run: &CpuRunContext<'_>) -> Dst {
        Dst::new(self.first(run), self.width)
    }
}

/// Quantised activations in the arena, as the activation layouts of this crate lay them out.
#[derive(Clone)]
pub(crate) struct QuantizedRows {
    pub(super) spot: ArenaSlice,
    pub(super) rows: Dim,
}

impl QuantizedRows {
    /// How many rows there are.
    pub(crate) fn rows(&self) -> Dim {
        self.rows
    }

    /// The first byte. `yirage_plan::VerifiedPlan` proves that the bytes which the target's storage size gives lie inside the
    /// arena.
    pub(crate) fn first(&self, run: &CpuRunContext<'_>) -> *mut u8 {
        self.spot.first(run.arena)
    }
}
