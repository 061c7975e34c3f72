//! What a driver does.

use super::command::{Binding, ModuleId, OperationId, StepCommand};
use super::error::DriverError;
use super::memory::{BufferId, BufferSlice};
use super::persistent_step::PersistentStep;
use crate::record::{HostMemory, Record, StagingMemory};
use std::sync::Arc;
use std::time::Duration;

/// Commands that a device was given to run again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CapturedGraphId(pub u64);

/// Bytes on their way from a device to the host.
pub trait Download: Send {
    /// The bytes; of use once the queue has signalled what was submitted after the download.
    fn take(self: Box<Self>) -> Record;
}

/// A moment of a device's own clock.
pub trait Timestamp: Send {
    /// The time from a moment that is the same for all timestamps of a device; of use once the queue has signalled what was
    /// submitted after the timestamp.
    fn take(self: Box<Self>) -> Duration;
}

/// A clock that runs on the device, so that steps are timed without the host.
pub trait DeviceClock {
    /// Submits: notes the time when everything before has run.
    ///
    /// # Errors
    /// As [`Driver::submit`].
    fn timestamp(&self) -> Result<Box<dyn Timestamp>, DriverError>;
}

/// Commands that are given to a device once, and submitted many times at the price of one.
pub trait GraphCapture {
    /// Gives commands to the device, in their order. None of them runs. Whoever captures keeps the buffers that they name
    /// until the graph is released.
    ///
    /// # Errors
    /// As [`Driver::submit`].
    fn capture(&self, commands: Vec<StepCommand>) -> Result<CapturedGraphId, DriverError>;
    /// Submits: all commands of a captured graph.
    ///
    /// # Errors
    /// As [`Driver::submit`].
    fn replay(&self, graph: CapturedGraphId) -> Result<(), DriverError>;
    /// Forgets a graph once everything submitted so far has run.
    fn release(&self, graph: CapturedGraphId);
}

/// A step that a device was given as one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PersistentStepId(pub u64);

/// Steps as one kernel whose groups are all on the device at once and stay there to the step's end: a launch of the step begins
/// when those have ended that it waits for, and the others do not matter to it.
pub trait PersistentKernels {
    /// Makes a step ready, for all sizes within its plan's. None of it runs. Whoever prepares keeps the code and the buffers that
    /// it names until the step is released.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`] of a step that cannot be one kernel on this device; else as [`Driver::module`].
    fn prepare(&self, step: &PersistentStep) -> Result<PersistentStepId, DriverError>;
    /// Submits: all launches of a step.
    ///
    /// # Errors
    /// As [`Driver::submit`].
    fn run(&self, step: PersistentStepId) -> Result<(), DriverError>;
    /// Forgets a step once everything submitted so far has run.
    fn release(&self, step: PersistentStepId);
}

/// An operation that a vendor's library is ready to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreparedOperation {
    /// The operation.
    pub id: OperationId,
    /// Bytes of workspace that every call of it wants.
    pub workspace: u64,
}

/// Operations of a vendor's library: described, prepared once for their operands, and called in every step.
pub trait OperationLibrary {
    /// Makes an operation ready. `descriptor` is what the backend's kernels and its driver have agreed on.
    ///
    /// # Errors
    /// An operation that the library does not have for such operands.
    fn prepare(&self, descriptor: &[u8], bindings: &[Binding]) -> Result<PreparedOperation, DriverError>;
    /// Forgets an operation once everything submitted so far has run.
    fn release(&self, operation: OperationId);
}

/// A second queue of a device, for copies from the host beside what the first one runs. Only memory that nothing on the
/// first queue touches is written.
pub trait TransferQueue {
    /// Submits: bytes of the host to as many of the device. The memory is kept until they are there, and no longer.
    ///
    /// # Errors
    /// As [`Driver::submit`].
    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError>;
    /// Submits a signal, as [`Driver::signal`] for this queue.
    ///
    /// # Errors
    /// As [`Driver::submit`].
    fn signal(&self) -> Result<u64, DriverError>;
    /// As [`Driver::wait`] for this queue.
    ///
    /// # Errors
    /// As [`Driver::wait`].
    fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError>;
}

/// A vendor's runtime for one device: memory, and one queue whose commands run in the order in which they are submitted.
///
/// A command returns before it has run. What goes wrong in it later is told by the next [`Driver::wait`] for a value that
/// was signalled behind it.
pub trait Driver: Send + Sync + 'static {
    /// Takes memory, at a multiple of 256 bytes. What is in it is not known.
    ///
    /// # Errors
    /// [`DriverError::OutOfMemory`], and what the runtime says.
    fn alloc(&self, bytes: u64) -> Result<BufferId, DriverError>;
    /// Gives memory back once everything submitted so far has run. It never fails: of a lost device nothing is left.
    fn free(&self, buffer: BufferId);
    /// Submits a command.
    ///
    /// # Errors
    /// What the runtime says at once, so for all that submits; a kernel that the module does not have, an operation that
    /// was not prepared.
    fn submit(&self, command: StepCommand) -> Result<(), DriverError>;
    /// Submits: bytes of the host to the device, to as many. The memory is kept until they are there.
    ///
    /// # Errors
    /// As [`Driver::submit`].
    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError>;
    /// Submits: bytes of the device to the host.
    ///
    /// # Errors
    /// As [`Driver::submit`].
    fn download(&self, from: BufferSlice) -> Result<Box<dyn Download>, DriverError>;
    /// Submits on both devices: bytes of `peer`, as they are once everything submitted there so far has run, to as many of
    /// this device. What is submitted to either later finds the copy made.
    ///
    /// # Errors
    /// As [`Driver::submit`]; [`DriverError::Unsupported`] where devices do not reach each other, which is what a driver
    /// says by itself.
    fn copy_from(&self, _peer: &Self, _from: BufferSlice, _to: BufferSlice) -> Result<(), DriverError>
    where
        Self: Sized,
    {
        let why = "its driver reaches no other device's memory".into();
        Err(DriverError::Unsupported { what: "a copy between devices".into(), why })
    }
    /// Memory of the host from which the device copies without help of the host.
    ///
    /// # Errors
    /// What the runtime says. A driver without such memory gives ordinary one, which is what it does by itself.
    fn staging(&self, bytes: usize) -> Result<Arc<dyn StagingMemory>, DriverError> {
        Ok(Arc::new(Record::zeroed(bytes)))
    }
    /// A queue for weights beside the first; none where there is no other.
    fn transfer_queue(&self) -> Option<&dyn TransferQueue> {
        None
    }
    /// Gives code to the device.
    ///
    /// # Errors
    /// Code that is none for this device.
    fn module(&self, code: &[u8]) -> Result<ModuleId, DriverError>;
    /// Forgets code once everything submitted so far has run.
    fn unload(&self, module: ModuleId);
    /// How commands are captured; none where they cannot be.
    fn graph_capture(&self) -> Option<&dyn GraphCapture> {
        None
    }
    /// How a step runs as one kernel; none where groups of a launch cannot wait for each other.
    fn persistent_kernels(&self) -> Option<&dyn PersistentKernels> {
        None
    }
    /// The operations of the vendor's library; none where there is no such library.
    fn operations(&self) -> Option<&dyn OperationLibrary> {
        None
    }
    /// The device's clock; none where the host cannot read one.
    fn clock(&self) -> Option<&dyn DeviceClock> {
        None
    }
    /// Submits a signal: the queue's value grows to the one that is given back once everything before has run.
    ///
    /// # Errors
    /// As [`Driver::submit`].
    fn signal(&self) -> Result<u64, DriverError>;
    /// The last value that the queue has signalled.
    ///
    /// # Errors
    /// A lost device.
    fn reached(&self) -> Result<u64, DriverError>;
    /// Waits until the queue has signalled `value`, and says what was wrong with what ran between the signal before it
    /// and this one.
    ///
    /// # Errors
    /// That, a lost device, and [`DriverError::Deadline`].
    fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError>;
    /// How many steps may be on the queue at once.
    fn in_flight(&self) -> usize;
}
