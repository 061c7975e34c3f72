//! What a driver does.

use super::error::DriverError;
use crate::record::{HostMemory, Record};
use std::sync::Arc;
use std::time::Duration;

/// A place in a device's memory. The host cannot read there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(pub u64);

impl Address {
    /// `bytes` further; an address past the end of all memory where that is no number.
    #[must_use]
    pub fn offset(self, bytes: u64) -> Address {
        Address(self.0.saturating_add(bytes))
    }
}

/// Code that was given to a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ModuleId(pub u64);

/// An argument of a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum KernelArg {
    /// A place in the device's memory.
    Address(Address),
    /// A number.
    U32(u32),
}

/// Launches that a device was given to play again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CapturedGraphId(pub u64);

/// A kernel to run.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// The code.
    pub module: ModuleId,
    /// The kernel's name there.
    pub entry: String,
    /// Groups of threads, along three axes.
    pub grid: [u32; 3],
    /// Threads of a group, along three axes.
    pub block: [u32; 3],
    /// Its arguments.
    pub args: Vec<KernelArg>,
}

/// Bytes on their way from a device to the host.
pub trait Download: Send {
    /// The bytes; of use once the queue has signalled what was submitted after the download.
    fn take(self: Box<Self>) -> Record;
}

/// Launches that are given to a device once, and submitted many times at the price of one command.
pub trait GraphCapture {
    /// Gives launches to the device, in their order. None of them runs.
    ///
    /// # Errors
    /// As [`Driver::launch`].
    fn capture(&self, launches: Vec<Launch>) -> Result<CapturedGraphId, DriverError>;
    /// Submits: all launches of a recording.
    ///
    /// # Errors
    /// As [`Driver::fill`].
    fn replay(&self, recording: CapturedGraphId) -> Result<(), DriverError>;
    /// Forgets a recording once everything submitted so far has run.
    fn release(&self, recording: CapturedGraphId);
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
    fn alloc(&self, bytes: u64) -> Result<Address, DriverError>;
    /// Gives memory back once everything submitted so far has run. It never fails: of a lost device nothing is left.
    fn free(&self, at: Address);
    /// Submits: makes every one of `bytes` bytes this one.
    ///
    /// # Errors
    /// What the runtime says at once; so for all that submits.
    fn fill(&self, at: Address, byte: u8, bytes: u64) -> Result<(), DriverError>;
    /// Submits: bytes of the host to the device. The memory is kept until they are there.
    ///
    /// # Errors
    /// As [`Driver::fill`].
    fn upload(&self, from: Arc<dyn HostMemory>, to: Address) -> Result<(), DriverError>;
    /// Submits: bytes of the device to the host.
    ///
    /// # Errors
    /// As [`Driver::fill`].
    fn download(&self, from: Address, bytes: u64) -> Result<Box<dyn Download>, DriverError>;
    /// Submits: bytes of the device to another place of it. The two do not overlap.
    ///
    /// # Errors
    /// As [`Driver::fill`].
    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DriverError>;
    /// Submits on both devices: bytes of `peer`, as they are once everything submitted there so far has run, to this
    /// device. What is submitted to either later finds the copy made.
    ///
    /// # Errors
    /// As [`Driver::fill`]; [`DriverError::Unsupported`] where devices do not reach each other, which is what a driver
    /// says by itself.
    fn copy_from(&self, _peer: &Self, _from: Address, _to: Address, _bytes: u64) -> Result<(), DriverError>
    where
        Self: Sized,
    {
        let why = "its driver reaches no other device's memory".into();
        Err(DriverError::Unsupported { what: "a copy between devices".into(), why })
    }
    /// Gives code to the device.
    ///
    /// # Errors
    /// Code that is none for this device.
    fn module(&self, code: &[u8]) -> Result<ModuleId, DriverError>;
    /// Forgets code once everything submitted so far has run.
    fn unload(&self, module: ModuleId);
    /// Submits a kernel.
    ///
    /// # Errors
    /// As [`Driver::fill`], and a kernel that the module does not have.
    fn launch(&self, launch: Launch) -> Result<(), DriverError>;
    /// How launches are recorded; none where they cannot be.
    fn graph_capture(&self) -> Option<&dyn GraphCapture> {
        None
    }
    /// Submits a signal: the queue's value grows to the one that is given back once everything before has run.
    ///
    /// # Errors
    /// As [`Driver::fill`].
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
