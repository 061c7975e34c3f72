//! Outputs of a step that stay where they were computed.

use super::arena_slice::ArenaSlice;
use super::run::ProgramMemory;
use crate::shared::{CpuContext, RunPermit};
use std::sync::Arc;
use yirage_hal::{HalError, Record};
use yirage_ir::{Dims, Type};

/// An output of a program's step.
pub(crate) struct CpuResident {
    memory: Arc<ProgramMemory>,
    spot: ArenaSlice,
    bytes: usize,
    /// Which step of those that write to the memory it is of.
    step: u64,
}

impl CpuResident {
    /// A value of type `ty` in `memory`, computed by step `step` of those that write there, which has these sizes.
    pub(crate) fn new(
        memory: &Arc<ProgramMemory>,
        (spot, ty): &(ArenaSlice, Type),
        dims: &Dims,
        step: u64,
    ) -> CpuResident {
        CpuResident { memory: memory.clone(), spot: spot.clone(), bytes: ty.bytes(dims), step }
    }

    /// That it lies on this device, and no later step has written over it.
    ///
    /// # Errors
    /// What is wrong with it for a step input of this name.
    pub(super) fn check(&self, shared: &Arc<CpuContext>, slot: &str) -> Result<(), HalError> {
        if !self.memory.is_of(shared) {
            return Err(HalError::Step(format!("step input `{slot}` lies on another device")));
        }
        let now = self.memory.steps();
        if now == self.step {
            return Ok(());
        }
        let late = now - self.step;
        Err(HalError::Step(format!("step input `{slot}` is given an output that {late} later steps have written over")))
    }

    /// Whether it lies in this memory.
    pub(super) fn is_of(&self, memory: &Arc<ProgramMemory>) -> bool {
        Arc::ptr_eq(&self.memory, memory)
    }

    /// The elements, row-major, for as long as the turn is held: the next step of the program may write over them.
    pub(crate) fn bytes<'a>(&'a self, _: &'a RunPermit<'_>) -> &'a [u8] {
        let first = self.spot.first(&self.memory.arena);
        // SAFETY: `yirage_plan::VerifiedPlan` proves that the whole value lies inside the arena in the largest step. Programs of a
        // device write only while they hold its `RunPermit`, which is borrowed here for as long as the slice lives.
        unsafe { std::slice::from_raw_parts(first, self.bytes) }
    }

    /// A copy for the host.
    pub(crate) fn record(&self, turn: &RunPermit<'_>) -> Record {
        Record::of(self.bytes(turn))
    }
}
