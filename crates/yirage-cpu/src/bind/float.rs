//! Numbers that kernels read.

use super::arena_slice::ArenaSlice;
use super::group::WorkerSlice;
use super::location::Moves;
use super::run::CpuRunContext;
use crate::storage::{DecodedRows, WeightElements};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use yirage_cpu_kernels::memory::prefetch;
use yirage_cpu_kernels::rows::Src;
use yirage_ir::{DType, Dim, Dims};

/// Memory of a dense value.
#[derive(Clone)]
pub(super) enum Base {
    /// In the arena.
    Arena(ArenaSlice),
    /// With the worker.
    Group(WorkerSlice),
    /// A step input by number.
    StepInput(usize),
    /// A weight held as plain rows.
    Weight(Arc<DecodedRows>),
    /// A weight held element by element; who reads it knows their type.
    Elements(Arc<WeightElements>),
    /// A tile of what lies elsewhere, of elements of so many bytes.
    Tile(Box<Base>, Moves, usize),
}

impl Base {
    /// The address of the first element. `yirage_plan::VerifiedPlan` proves that arena values lie inside the arena,
    /// [`super::step_inputs`] that step inputs have as many words as their types, `Binder::weight` that weights have.
    pub(super) fn first(&self, run: &CpuRunContext<'_>) -> *const f32 {
        match self {
            Base::Arena(spot) => spot.first(run.arena).cast::<f32>().cast_const(),
            Base::Group(spot) => spot.first(run).cast::<f32>().cast_const(),
            Base::StepInput(index) => run.step_inputs[*index].as_ptr().cast(),
            Base::Weight(rows) => rows.values().as_ptr(),
            Base::Elements(held) => held.bytes().as_ptr().cast(),
            // Inside: `yirage_ir` has checked that all tiles are parts of the value.
            Base::Tile(of, moves, bytes) => of.first(run).wrapping_byte_add(moves.to(run.tile) * bytes),
        }
    }
}

/// Rows of floats.
#[derive(Clone)]
pub(crate) struct FloatRows {
    pub(super) base: Base,
    pub(super) rows: Dim,
    pub(super) width: usize,
}

impl FloatRows {
    /// Elements of a row.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> Dim {
        self.rows
    }

    /// As many rows as there are at most.
    pub(crate) fn most(&self, bucket: &Dims) -> usize {
        self.rows.get(bucket)
    }

    /// The rows.
    pub(crate) fn src(&self, run: &CpuRunContext<'_>) -> Src {
        Src::new(self.base.first(run), self.width)
    }

    /// The first element; rows follow each other without gaps.
    pub(crate) fn first(&self, run: &CpuRunContext<'_>) -> *const f32 {
        self.base.first(run)
    }

    /// Asks for a single row that other workers may have had a part in: it lies in their caches then, and is too short for
    /// the hardware to see what is coming.
    pub(crate) fn fetch(&self, run: &CpuRunContext<'_>, rows: &Range<usize>) {
        if rows.len() == 1 && matches!(self.base, Base::Arena(_)) {
            let first = self.first(run).wrapping_add(rows.start * self.width);
            prefetch(first.cast(), self.width * size_of::<f32>());
        }
    }

    /// All elements.
    ///
    /// # Safety
    /// A computed value was written before and is not written meanwhile.
    pub(crate) unsafe fn all<'a>(&'a self, run: &'a CpuRunContext<'_>) -> &'a [f32] {
        // SAFETY: what `FloatRows::all` is promised; and these are the rows that exist; `yirage_plan::VerifiedPlan`
        // proves it of programs.
        unsafe { self.some(run, 0..run.size(self.rows)) }
    }

    /// The elements of some rows.
    ///
    /// # Safety
    /// The rows exist in this run; those of a computed value were written before and are not written meanwhile.
    pub(crate) unsafe fn some<'a>(&'a self, run: &'a CpuRunContext<'_>, rows: Range<usize>) -> &'a [f32] {
        // SAFETY: the value is whole in its memory (`Base::first`); the caller orders writes before.
        unsafe {
            let first = self.base.first(run).wrapping_add(rows.start * self.width);
            std::slice::from_raw_parts(first, rows.len() * self.width)
        }
    }
}

/// One row of floats, which every row of another operand meets.
#[derive(Clone)]
pub(crate) struct FloatRow {
    pub(super) base: Base,
    pub(super) width: usize,
}

impl FloatRow {
    /// The first element.
    pub(crate) fn first(&self, run: &CpuRunContext<'_>) -> *const f32 {
        self.base.first(run)
    }

    /// Its elements.
    ///
    /// # Safety
    /// As [`FloatRows::all`].
    pub(crate) unsafe fn all<'a>(&'a self, run: &'a CpuRunContext<'_>) -> &'a [f32] {
        // SAFETY: as in `FloatRows::all`.
        unsafe { std::slice::from_raw_parts(self.base.first(run), self.width) }
    }
}

/// Elements that are one 32-bit word each, of which any bits are a value.
pub(crate) trait Word: Copy {
    /// The type in graphs.
    const DTYPE: DType;
}

impl Word for i32 {
    const DTYPE: DType = DType::I32;
}
impl Word for u32 {
    const DTYPE: DType = DType::U32;
}
impl Word for f32 {
    const DTYPE: DType = DType::F32;
}

/// Words of any shape: ids, positions, choices; given in a step input or computed.
#[derive(Clone)]
pub(crate) struct WordArray<T> {
    pub(super) base: Base,
    pub(super) shape: Vec<Dim>,
    pub(super) of: PhantomData<T>,
}

impl<T: Word> WordArray<T> {
    /// All of them.
    ///
    /// # Safety
    /// As [`FloatRows::all`].
    pub(crate) unsafe fn all<'a>(&'a self, run: &'a CpuRunContext<'_>) -> &'a [T] {
        let rows = self.shape.first().map_or(1, |&dim| run.size(dim));
        // SAFETY: what `WordArray::all` is promised; and these are the rows that exist; `yirage_plan::VerifiedPlan`
        // proves it of programs.
        unsafe { self.some(run, 0..rows) }
    }

    /// Those of some rows, which run over the first dimension.
    ///
    /// # Safety
    /// As [`FloatRows::some`].
    pub(crate) unsafe fn some<'a>(&'a self, run: &'a CpuRunContext<'_>, rows: Range<usize>) -> &'a [T] {
        let row: usize = self.shape.iter().skip(1).map(|&dim| run.size(dim)).product();
        // SAFETY: as in `FloatRows::some`; any word is a `T`, as `Word` says.
        unsafe {
            let first = self.base.first(run).cast::<T>().wrapping_add(rows.start * row);
            std::slice::from_raw_parts(first, rows.len() * row)
        }
    }
}
