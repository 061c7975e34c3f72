//! What a maker's runtime gives: memory, a stream, events, operators; and who owns what it gave.
//!
//! A handle is of the device that made it and goes back to it once, when its owner is dropped; the owners keep the device. Unknown
//! here: what the calls are named, and when the device has done what it was told.

use crate::operands::OperandMemory;
use crate::operators::OperatorCall;
use crate::range::NpuRange;
use crate::status::refused;
use crate::symbols::LibraryPointer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use yirage_collectives::{CollectiveError, DeviceCommunicator, DeviceElements};
use yirage_comm::CollectiveKind;
use yirage_hal::driver::DriverError;

/// A handle of a runtime's, of no use to this program but to be given back to it.
#[derive(Clone, Copy)]
pub(crate) struct LibraryHandle(LibraryPointer);

// SAFETY: both makers' handles may be used by any thread whose current context or device is theirs, which every method of
// `AcceleratorRuntime` makes sure of (AscendCL, 'Synchronous and asynchronous'; CNRT, 'Multi-threading').
unsafe impl Send for LibraryHandle {}
// SAFETY: as for `Send`; the runtimes lock for themselves.
unsafe impl Sync for LibraryHandle {}

impl LibraryHandle {
    pub(crate) fn new(pointer: LibraryPointer) -> LibraryHandle {
        LibraryHandle(pointer)
    }

    pub(crate) fn pointer(self) -> LibraryPointer {
        self.0
    }
}

/// Between whose memories bytes are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CopyDirection {
    ToDevice,
    ToHost,
    OnDevice,
}

/// A collective that a library is told of.
#[derive(Clone, Copy)]
pub(crate) struct MakerCollective<'a> {
    pub(crate) communicator: &'a DeviceCommunicator,
    pub(crate) kind: CollectiveKind,
    pub(crate) elements: DeviceElements,
}

/// The runtime of one device. Every method makes that device the calling thread's own for as long as it runs.
pub(crate) trait AcceleratorRuntime: Send + Sync {
    /// Makes the device this thread's own for as long as the thread lives: for one that a library is called on.
    fn stay(&self) -> Result<(), DriverError>;
    /// Takes memory of the device, of at least one byte.
    fn alloc(&self, bytes: usize) -> Result<LibraryHandle, DriverError>;
    /// Gives memory back.
    ///
    /// # Safety
    /// It was given by `alloc`, goes back once, and nothing on a stream has it.
    unsafe fn free(&self, memory: LibraryHandle);
    /// Takes page-locked memory of the host, of at least one byte, which no one else has.
    fn alloc_host(&self, bytes: usize) -> Result<LibraryHandle, DriverError>;
    /// Gives page-locked memory back.
    ///
    /// # Safety
    /// It was given by `alloc_host`, goes back once, and nothing on a stream has it.
    unsafe fn free_host(&self, memory: LibraryHandle);
    /// Makes an event.
    fn new_event(&self) -> Result<LibraryHandle, DriverError>;
    /// Gives an event back.
    ///
    /// # Safety
    /// It was given by `new_event` and goes back once.
    unsafe fn drop_event(&self, event: LibraryHandle);
    /// Whether an event has happened.
    ///
    /// # Safety
    /// It was given by `new_event`.
    unsafe fn has_happened(&self, event: LibraryHandle) -> Result<bool, DriverError>;
    /// Makes a stream.
    fn new_stream(&self) -> Result<LibraryHandle, DriverError>;
    /// Gives a stream back.
    ///
    /// # Safety
    /// It was given by `new_stream` and goes back once, with nothing left to run.
    unsafe fn drop_stream(&self, stream: LibraryHandle);
    /// Submits a copy of bytes.
    ///
    /// # Safety
    /// Both memories are so long, lie where the direction says, and are kept until the stream has run the copy.
    unsafe fn copy(
        &self,
        stream: LibraryHandle,
        direction: CopyDirection,
        to: LibraryPointer,
        from: LibraryPointer,
        bytes: usize,
    ) -> Result<(), DriverError>;
    /// Submits: makes every byte this one.
    ///
    /// # Safety
    /// As [`AcceleratorRuntime::copy`], of memory of the device.
    unsafe fn fill(&self, stream: LibraryHandle, to: LibraryPointer, bytes: usize, byte: u8)
    -> Result<(), DriverError>;
    /// Submits: the event happens when everything before has run.
    ///
    /// # Safety
    /// Both were given by this runtime.
    unsafe fn record(&self, stream: LibraryHandle, event: LibraryHandle) -> Result<(), DriverError>;
    /// Waits until everything has run, so long at most; whether it has, and what was wrong with it.
    ///
    /// # Safety
    /// The stream was given by `new_stream`.
    unsafe fn wait(&self, stream: LibraryHandle, milliseconds: i32) -> Result<bool, DriverError>;
    /// Asks an operator what it wants to work in, in bytes, and runs nothing.
    fn wanted_workspace(&self, call: &OperatorCall, memory: &OperandMemory<'_>) -> Result<u64, DriverError>;
    /// Submits an operator, which works in `working`, the part of the workspace that is behind the temporaries.
    ///
    /// # Safety
    /// The stream was given by `new_stream`; the memory is kept until it has run the operator.
    unsafe fn run_operator(
        &self,
        stream: LibraryHandle,
        call: &OperatorCall,
        memory: &OperandMemory<'_>,
        working: Option<NpuRange>,
    ) -> Result<(), DriverError>;
    /// Submits what the device does with others of its group: what the library of collectives says of it, and what the runtime does.
    ///
    /// # Safety
    /// The stream was given by `new_stream`; the elements lie whole in memory of the device, which is kept until it has run them.
    unsafe fn collective(
        &self,
        stream: LibraryHandle,
        call: MakerCollective<'_>,
    ) -> Result<Result<(), CollectiveError>, DriverError>;
}

/// Memory of a device.
pub(crate) struct NpuMemory {
    runtime: Arc<dyn AcceleratorRuntime>,
    address: LibraryHandle,
    bytes: u64,
}

impl NpuMemory {
    /// Takes memory. Of no byte there is no memory: one is taken.
    pub(crate) fn new(runtime: &Arc<dyn AcceleratorRuntime>, bytes: u64) -> Result<NpuMemory, DriverError> {
        let wanted = usize::try_from(bytes).map_err(|e| refused("alloc", e.to_string()))?;
        let address = runtime.alloc(wanted.max(1)).map_err(|error| match error {
            DriverError::OutOfMemory { free, total, .. } => DriverError::OutOfMemory { wanted: bytes, free, total },
            other => other,
        })?;
        Ok(NpuMemory { runtime: runtime.clone(), address, bytes })
    }

    /// Bytes of it; none where they are not among them.
    pub(crate) fn range(&self, offset: u64, bytes: u64) -> Option<NpuRange> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        let bytes = usize::try_from(bytes).ok().filter(|_| inside)?;
        Some(NpuRange::new(self.address.0.addr() as u64 + offset, bytes))
    }
}

impl Drop for NpuMemory {
    fn drop(&mut self) {
        // SAFETY: it was given by `alloc` and goes back once; whoever dropped it knows that nothing on a stream has it.
        unsafe { self.runtime.free(self.address) };
    }
}

/// Page-locked memory of the host, zeroed, which the device reads and writes by itself.
pub(crate) struct LockedMemory {
    runtime: Arc<dyn AcceleratorRuntime>,
    address: LibraryHandle,
    bytes: usize,
}

impl LockedMemory {
    pub(crate) fn new(runtime: &Arc<dyn AcceleratorRuntime>, bytes: usize) -> Result<LockedMemory, DriverError> {
        let address = runtime.alloc_host(bytes.max(1))?;
        if address.0.is_null() {
            return Err(refused("staging", "the runtime gave no memory and no reason"));
        }
        // SAFETY: so many bytes are ours from now on, and nobody else has them.
        unsafe { std::ptr::write_bytes(address.0.cast::<u8>(), 0, bytes) };
        Ok(LockedMemory { runtime: runtime.clone(), address, bytes })
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The bytes, where no stream is writing them.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `new` has given and zeroed them; whoever reads knows that no stream writes them any more.
        unsafe { std::slice::from_raw_parts(self.address.0.cast(), self.bytes) }
    }

    /// The bytes, to write.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`; what a stream has is behind a handle of its own, so that nobody has the only one.
        unsafe { std::slice::from_raw_parts_mut(self.address.0.cast(), self.bytes) }
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        // SAFETY: it was given by `alloc_host` and goes back once.
        unsafe { self.runtime.free_host(self.address) };
    }
}

/// A moment of a stream, which is recorded once.
pub(crate) struct NpuEvent {
    runtime: Arc<dyn AcceleratorRuntime>,
    event: LibraryHandle,
}

impl NpuEvent {
    pub(crate) fn new(runtime: &Arc<dyn AcceleratorRuntime>) -> Result<NpuEvent, DriverError> {
        Ok(NpuEvent { event: runtime.new_event()?, runtime: runtime.clone() })
    }

    /// Whether it has happened.
    pub(crate) fn has_happened(&self) -> Result<bool, DriverError> {
        // SAFETY: the event is ours.
        unsafe { self.runtime.has_happened(self.event) }
    }
}

impl Drop for NpuEvent {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and goes back once.
        unsafe { self.runtime.drop_event(self.event) };
    }
}

/// A queue of a device.
pub(crate) struct NpuStream {
    runtime: Arc<dyn AcceleratorRuntime>,
    stream: LibraryHandle,
    is_abandoned: AtomicBool,
}

impl NpuStream {
    pub(crate) fn new(runtime: &Arc<dyn AcceleratorRuntime>) -> Result<NpuStream, DriverError> {
        let (stream, is_abandoned) = (runtime.new_stream()?, AtomicBool::new(false));
        Ok(NpuStream { stream, runtime: runtime.clone(), is_abandoned })
    }

    /// What the libraries know it by.
    pub(crate) fn handle(&self) -> LibraryHandle {
        self.stream
    }

    /// Submits: the first bytes of page-locked memory to as many of the device as the range has. Whoever calls keeps the memory.
    pub(crate) fn upload(&self, from: &LockedMemory, to: NpuRange) -> Result<(), DriverError> {
        fits("upload", to.bytes(), from.bytes)?;
        let source = from.address.0;
        // SAFETY: both are so long; the caller gives the memory to `NpuQueue::submit`, which keeps it until then.
        unsafe { self.runtime.copy(self.stream, CopyDirection::ToDevice, to.pointer(), source, to.bytes()) }
    }

    /// Submits: bytes of the device to the beginning of page-locked memory, which the caller keeps until they are there.
    pub(crate) fn download(&self, from: NpuRange, to: &LockedMemory) -> Result<(), DriverError> {
        fits("download", from.bytes(), to.bytes)?;
        let target = to.address.0;
        // SAFETY: the bytes fit; the caller gives the memory to `NpuQueue::submit`, which keeps it.
        unsafe { self.runtime.copy(self.stream, CopyDirection::ToHost, target, from.pointer(), from.bytes()) }
    }

    /// Submits a copy between parts of memory that do not overlap.
    pub(crate) fn copy(&self, from: NpuRange, to: NpuRange) -> Result<(), DriverError> {
        if from.bytes() != to.bytes() {
            return Err(refused("copy", format!("{} bytes are given for {}", from.bytes(), to.bytes())));
        }
        if from.overlaps(to) {
            return Err(refused("copy", format!("{from:?} and {to:?} overlap")));
        }
        // SAFETY: both lie in memory of this device and are so long.
        unsafe { self.runtime.copy(self.stream, CopyDirection::OnDevice, to.pointer(), from.pointer(), to.bytes()) }
    }

    /// Submits: makes every byte this one.
    pub(crate) fn fill(&self, range: NpuRange, byte: u8) -> Result<(), DriverError> {
        // SAFETY: the bytes lie in memory of this device.
        unsafe { self.runtime.fill(self.stream, range.pointer(), range.bytes(), byte) }
    }

    /// Submits: the event happens when everything before has run.
    pub(crate) fn record(&self, event: &NpuEvent) -> Result<(), DriverError> {
        // SAFETY: both are ours.
        unsafe { self.runtime.record(self.stream, event.event) }
    }

    /// Submits an operator, which works in the part of the workspace that is behind the temporaries. Whoever calls keeps the memory.
    pub(crate) fn operator(
        &self,
        call: &OperatorCall,
        memory: &OperandMemory<'_>,
        working: Option<NpuRange>,
    ) -> Result<(), DriverError> {
        // SAFETY: the stream is ours; the ranges lie in buffers, which go back behind everything that was submitted.
        unsafe { self.runtime.run_operator(self.stream, call, memory, working) }
    }

    /// Submits what the device does with others of its group. Whoever calls keeps the memory and the communicator.
    pub(crate) fn collective(&self, call: MakerCollective<'_>) -> Result<Result<(), CollectiveError>, DriverError> {
        // SAFETY: the stream is ours; `NpuDriver::collective` has seen that the operands lie whole in buffers, which go back behind
        // everything that was submitted.
        unsafe { self.runtime.collective(self.stream, call) }
    }

    /// Whether it was left as it is.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    /// Leaves it as it is, with its device: what stands in it does not end.
    pub(crate) fn abandon(&self) {
        if !self.is_abandoned.swap(true, Ordering::Relaxed) {
            std::mem::forget(self.runtime.clone());
        }
    }

    /// Waits until everything has run, so long at most; whether it has, and what was wrong with it.
    pub(crate) fn wait(&self, milliseconds: i32) -> Result<bool, DriverError> {
        // SAFETY: the stream is ours.
        unsafe { self.runtime.wait(self.stream, milliseconds) }
    }
}

impl Drop for NpuStream {
    fn drop(&mut self) {
        if !*self.is_abandoned.get_mut() {
            // SAFETY: it was made by `new` and goes back once; its queue has waited for what was submitted.
            unsafe { self.runtime.drop_stream(self.stream) };
        }
    }
}

fn fits(call: &'static str, bytes: usize, room: usize) -> Result<(), DriverError> {
    if bytes <= room { Ok(()) } else { Err(refused(call, format!("{bytes} bytes do not fit {room}"))) }
}
