//! Where a value of a plan lies.

use super::group::GroupSpot;
use super::run::TileAt;
use super::spot::Spot;
use crate::held::{CpuState, CpuWeight};
use std::fmt;
use std::sync::Arc;
use yirage_ir::Type;

/// An operand as the plan names it, before a kernel says what it wants of it.
#[derive(Clone)]
pub(super) struct Operand {
    /// The value's name.
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) location: Location,
    /// Whether an op of the same region makes it: then its rows are made while other rows are read.
    pub(super) inner: bool,
}

/// Memory of a value.
#[derive(Clone)]
pub(super) enum Location {
    /// Computed: in the arena.
    Arena(Spot),
    /// Computed and read inside a pass over rows, or of a tiled region, alone: with the worker.
    Group(GroupSpot),
    /// A tile of what lies elsewhere, by the elements that it moves.
    Tile(Box<Location>, Moves),
    /// A slot by number.
    Slot(usize),
    /// A weight.
    Weight(Arc<CpuWeight>),
    /// A cache state.
    State(Arc<CpuState>),
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

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.location {
            Location::Group(_) => "computed in the same pass over the rows",
            Location::Tile(..) => "a tile",
            Location::Arena(_) if self.inner => "computed in the same pass over the rows",
            Location::Arena(_) => "computed",
            Location::Slot(_) => "a slot",
            Location::Weight(weight) => match **weight {
                CpuWeight::Packed(_) => "a weight packed for products",
                CpuWeight::Rows(_) => "a weight held as plain rows",
                CpuWeight::Elements(_) => "a weight held element by element",
            },
            Location::State(_) => "a cache state",
        };
        write!(f, "`{}` ({}, {what})", self.name, self.ty)
    }
}
