//! Where a value of a plan lies.

use super::arena_slice::ArenaSlice;
use super::group::WorkerSlice;
use super::run::TileAt;
use crate::storage::{CpuKvCache, CpuWeight};
use std::fmt;
use std::sync::Arc;
use yirage_ir::Type;

/// An operand as the plan names it, before a kernel says what it wants of it.
#[derive(Clone)]
pub(super) struct PlanOperand {
    /// The value's name.
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) location: OperandLocation,
    /// Whether an op of the same region makes it: then its rows are made while other rows are read.
    pub(super) inner: bool,
}

/// Memory of a value.
#[derive(Clone)]
pub(super) enum OperandLocation {
    /// Computed: in the arena.
    Arena(ArenaSlice),
    /// Computed and read inside a pass over rows, or of a tiled region, alone: with the worker.
    Group(WorkerSlice),
    /// A tile of what lies elsewhere, by the elements that it moves.
    Tile(Box<OperandLocation>, Moves),
    /// A step input by number.
    StepInput(usize),
    /// A weight.
    Weight(Arc<CpuWeight>),
    /// A cache state.
    KvCache(Arc<CpuKvCache>),
}

/// Elements from one tile to the next: along each axis of the grid, and from iteration to iteration.
#[derive(Clone, Copy)]
pub(super) struct Moves {
    pub(super) grid: [usize; 3],
    pub(super) by_loop: usize,
}

impl Moves {
    /// Elements from the first tile to this one.
    pub(super) fn to(&self, at: TileAt) -> usize {
        let grid: usize = self.grid.iter().zip(at.block).map(|(step, b)| step * b).sum();
        grid + self.by_loop * at.iteration
    }
}

impl fmt::Display for PlanOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.location {
            OperandLocation::Group(_) => "computed in the same pass over the rows",
            OperandLocation::Tile(..) => "a tile",
            OperandLocation::Arena(_) if self.inner => "computed in the same pass over the rows",
            OperandLocation::Arena(_) => "computed",
            OperandLocation::StepInput(_) => "a step input",
            OperandLocation::Weight(weight) => match **weight {
                CpuWeight::Packed(_) => "a weight packed for products",
                CpuWeight::Rows(_) => "a weight held as plain rows",
                CpuWeight::Elements(_) => "a weight held element by element",
            },
            OperandLocation::KvCache(_) => "a cache state",
        };
        write!(f, "`{}` ({}, {what})", self.name, self.ty)
    }
}
