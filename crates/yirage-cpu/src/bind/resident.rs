//! Outputs of a step that stay where they were computed.

use super::run::Memory;
use super::spot::Spot;
use crate::shared::{Shared, Turn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use yirage_hal::{HalError, Record};
use yirage_ir::{Dims, Type};

/// An output of a program's step.
pub(crate) struct CpuResident {
    shared: Arc<Shared>,
    memory: Arc<Memory>,
    spot: Spot,
    bytes: usize,
    /// Which step of the program it is of, and how many there were by now.
    step: u64,
    steps: Arc<AtomicU64>,
}

impl CpuResident {
    /// A value of type `ty` in `memory`, computed by a step of these sizes, the program's last of `steps`.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        memory: &Arc<Memory>,
        (spot, ty): &(Spot, Type),
        dims: &Dims,
        steps: &Arc<AtomicU64>,
    ) -> CpuResident {
        let (shared, memory, spot) = (shared.clone(), memory.clone(), spot.clone());
        CpuResident {
            shared,
            memory,
            spot,
            bytes: ty.bytes(dims),
            step: steps.load(Ordering::Relaxed),
            steps: steps.clone(),
        }
    }

    /// That it lies on this device, and no later step has written over it.
    ///
    /// # Errors
    /// What is wrong with it for a slot of this name.
    pub(super) fn check(&self, shared: &Arc<Shared>, slot: &str) -> Result<(), HalError> {
        if !Arc::ptr_eq(&self.shared, shared) {
            return Err(HalError::Step(format!("slot `{slot}` lies on another device")));
        }
        let now = self.steps.load(Ordering::Relaxed);
        if now == self.step {
            return Ok(());
        }
        let late = now - self.step;
        Err(HalError::Step(format!("slot `{slot}` is given an output that {late} later steps have written over")))
    }

    /// Whether it lies in this memory.
    pub(super) fn is_of(&self, memory: &Arc<Memory>) -> bool {
        Arc::ptr_eq(&self.memory, memory)
    }

    /// The elements, row-major.
    pub(crate) fn bytes(&self, _: &Turn<'_>) -> &[u8] {
        let first = self.spot.first(&self.memory.arena);
        // SAFETY: `yirage_plan::VerifiedPlan` proves that the whole value lies inside the arena in the largest step; programs
        // of a device write only in their turn, which is another's now.
        unsafe { std::slice::from_raw_parts(first, self.bytes) }
    }

    /// A copy for the host.
    pub(crate) fn record(&self, turn: &Turn<'_>) -> Record {
        Record::of(self.bytes(turn))
    }
}
