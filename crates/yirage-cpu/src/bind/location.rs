//! Where a value of a plan lies.

use super::group::GroupSpot;
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
    /// Computed and read inside a pass over rows alone: with the worker.
    Group(GroupSpot),
    /// A slot by number.
    Slot(usize),
    /// A weight.
    Weight(Arc<CpuWeight>),
    /// A cache state.
    State(Arc<CpuState>),
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.location {
            Location::Group(_) => "computed in the same pass over the rows",
            Location::Arena(_) if self.inner => "computed in the same pass over the rows",
            Location::Arena(_) => "computed",
            Location::Slot(_) => "a slot",
            Location::Weight(weight) => match **weight {
                CpuWeight::Packed(_) => "a weight packed for products",
                CpuWeight::Rows(_) => "a weight held as plain rows",
            },
            Location::State(_) => "a cache state",
        };
        write!(f, "`{}` ({}, {what})", self.name, self.ty)
    }
}
