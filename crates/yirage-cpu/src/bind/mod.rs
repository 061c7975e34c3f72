//! Operands, checked once and bound into types that cannot fail.
//!
//! [`Binder`] finds where each value of a plan lies; [`Site`] gives a kernel its op's operands, each as the type that the
//! kernel reads ([`FloatRows`], [`WordArray`], [`LookupTable`], [`PackedWeight`], ...), or says which operand of which op is something else.
//! What a bound operand gives in a [`CpuRunContext`] is an address or a slice, without a second look. Knows no kernel.

mod arena_slice;
mod binder;
mod float;
mod group;
mod location;
mod out;
mod resident;
mod resources;
mod run;
mod scratch;
mod site;
mod step_inputs;
mod tiled;
mod viewed;

pub(crate) use arena_slice::shared_bytes;
pub(crate) use binder::{Binder, BoundOutput};
pub(crate) use float::{FloatRow, FloatRows, Word, WordArray};
pub(crate) use group::GROUP;
pub(crate) use out::{OutputRows, QuantizedRows};
pub(crate) use resident::CpuResident;
pub(crate) use resources::{KvCacheOperand, LookupTable, PackedWeight, StateOperand};
pub(crate) use run::{CpuRunContext, Failed, ProgramMemory, ProgramMemorySizes, TileAt};
pub(crate) use scratch::ScratchBuffer;
pub(crate) use site::{CacheShape, QuantizedReaders, Site};
pub(crate) use step_inputs::CpuStepInputs;
pub(crate) use tiled::{Carry, IterationFilter, TileStep};
pub(crate) use viewed::{Viewed, ViewedOut, Whole};
