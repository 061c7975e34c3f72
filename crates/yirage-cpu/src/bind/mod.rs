//! Operands, checked once and bound into types that cannot fail.
//!
//! [`Binder`] finds where each value of a plan lies; [`Site`] gives a kernel its op's operands, each as the type that the
//! kernel reads ([`FloatRows`], [`Array`], [`Table`], [`Packed`], ...), or says which operand of which op is something else.
//! What a bound operand gives in a [`Run`] is an address or a slice, without a second look. Knows no kernel.

mod binder;
mod float;
mod group;
mod held;
mod location;
mod out;
mod resident;
mod run;
mod scratch;
mod site;
mod slots;
mod spot;
mod tiled;
mod viewed;

pub(crate) use binder::{Binder, Output};
pub(crate) use float::{Array, FloatRow, FloatRows, Word};
pub(crate) use group::GROUP;
pub(crate) use held::{Cache, Packed, Table};
pub(crate) use out::{Codes, Out};
pub(crate) use resident::CpuResident;
pub(crate) use run::{Failed, Memory, Run, TileAt, Wanted};
pub(crate) use scratch::Scratch;
pub(crate) use site::{CacheShape, Readers, Site};
pub(crate) use slots::Slots;
pub(crate) use spot::shared_bytes;
pub(crate) use tiled::{Carry, TileStep, Turn};
pub(crate) use viewed::{Viewed, ViewedOut, Whole};
