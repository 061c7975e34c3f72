//! Memory for the values of programs of which one runs at a time.

use super::buffer::{Buffer, DriverAccount};
use super::contract::Driver;
use super::memory::BufferSlice;
use crate::error::HalError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory.
pub(super) struct Arena<D: Driver> {
    pub(super) buffer: Buffer<D>,
    /// Steps that were submitted to write there, which whoever was given an output looks at.
    steps: AtomicU64,
}

/// An output where it lies.
pub(super) struct DeviceOutput<D: Driver> {
    pub(super) arena: Arc<Arena<D>>,
    pub(super) slice: BufferSlice,
    /// The number of the step that wrote it.
    pub(super) step: u64,
}

impl<D: Driver> Arena<D> {
    pub(super) fn new(buffer: Buffer<D>) -> Arena<D> {
        Arena { buffer, steps: AtomicU64::new(0) }
    }

    /// Whether it is memory of this device, of at least so many bytes.
    pub(super) fn fits(&self, account: &Arc<DriverAccount<D>>, bytes: u64) -> bool {
        self.buffer.is_of(account) && self.buffer.bytes() >= bytes
    }

    /// The number of a step that writes there from now on.
    pub(super) fn begin_step(&self) -> u64 {
        self.steps.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl<D: Driver> DeviceOutput<D> {
    /// That no later step has written over it.
    pub(super) fn check_current(&self, input: &str) -> Result<(), HalError> {
        let late = self.arena.steps.load(Ordering::Relaxed) - self.step;
        if late == 0 {
            return Ok(());
        }
        Err(HalError::Step(format!(
            "step input `{input}` is given an output that {late} later steps have written over"
        )))
    }
}
