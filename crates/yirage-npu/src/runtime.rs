//! The runtime's library and a device's context: every call into it, with what it takes checked by types.
//!
//! Whoever calls has entered the context ([`AscendContext::enter`]), which is this thread's then and until the guard goes. A handle
//! is of the context that made it and goes back to it once, when its owner is dropped; the owners keep the context. Unknown here:
//! when the device has done what it was told.

use crate::status::{self, NOT_YET, OUT_OF_MEMORY, STARTED_BEFORE, SUCCESS, refused};
use crate::symbols::{DescriptionFunctions, LibraryPointer, OperatorFunctions, RuntimeFunctions};
use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::Arc;
use yirage_hal::driver::DriverError;
use yirage_probe::{DriverLibrary, ProbeError};

/// `ACL_MEM_MALLOC_HUGE_FIRST`.
const HUGE_PAGES_FIRST: i32 = 0;
/// `ACL_HBM_MEM`.
const HBM: i32 = 1;
/// `ACL_MEMCPY_HOST_TO_DEVICE`.
const TO_DEVICE: i32 = 1;
/// `ACL_MEMCPY_DEVICE_TO_HOST`.
const TO_HOST: i32 = 2;
/// `ACL_MEMCPY_DEVICE_TO_DEVICE`.
const ON_DEVICE: i32 = 3;
/// `ACL_STOP_ON_FAILURE`: what comes behind a failure does not run, so that nothing is made of what is not there.
const STOP_ON_FAILURE: u64 = 1;
/// `ACL_EVENT_RECORDED_STATUS_COMPLETE`.
const HAPPENED: i32 = 1;

/// A handle of the runtime's, of no use to this program but to be given back to it.
#[derive(Clone, Copy)]
struct LibraryHandle(LibraryPointer);

// SAFETY: the runtime's handles may be used by any thread whose current context is theirs (AscendCL, 'Synchronous and asynchronous').
unsafe impl Send for LibraryHandle {}
// SAFETY: as above; the runtime locks for itself.
unsafe impl Sync for LibraryHandle {}

/// The three libraries.
pub(crate) struct AscendRuntime {
    functions: RuntimeFunctions,
    pub(crate) descriptions: DescriptionFunctions,
    pub(crate) operators: OperatorFunctions,
}

impl AscendRuntime {
    /// Of libraries that stay loaded.
    pub(crate) fn new(
        runtime: &DriverLibrary,
        descriptions: &DriverLibrary,
        operators: &DriverLibrary,
    ) -> Result<AscendRuntime, ProbeError> {
        Ok(AscendRuntime {
            functions: RuntimeFunctions::of(runtime)?,
            descriptions: DescriptionFunctions::of(descriptions)?,
            operators: OperatorFunctions::of(operators)?,
        })
    }

    /// What the runtime says of the last failure of this thread.
    fn said(&self) -> String {
        // SAFETY: it takes nothing.
        let text = unsafe { (self.functions.recent_error)() };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the runtime's text ends with a 0 and stays until the next call of this thread.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
    }

    pub(crate) fn check(&self, call: &'static str, code: i32) -> Result<(), DriverError> {
        if code == SUCCESS { Ok(()) } else { Err(status::error(call, code, &self.said())) }
    }
}

/// A context of a device, of this driver alone.
pub(crate) struct AscendContext {
    pub(crate) runtime: AscendRuntime,
    context: LibraryHandle,
}

/// The context is this thread's current one for as long as this lives; one that was so before is so again then.
pub(crate) struct CurrentContext<'a> {
    context: &'a AscendContext,
    before: LibraryHandle,
    /// It is this thread's.
    _thread: PhantomData<*const ()>,
}

impl AscendContext {
    /// Makes a context of the device of an ordinal.
    pub(crate) fn new(runtime: AscendRuntime, ordinal: u32) -> Result<Arc<AscendContext>, DriverError> {
        let wanted = i32::try_from(ordinal).map_err(|e| refused("open", e.to_string()))?;
        let f = &runtime.functions;
        // SAFETY: no file of settings is named.
        let started = unsafe { (f.start)(std::ptr::null()) };
        runtime.check("open", if started == STARTED_BEFORE { SUCCESS } else { started })?;
        let mut before = null_mut();
        // SAFETY: a context is written where there is one; a thread without one is told so.
        let has_one = unsafe { (f.current_context)(&mut before) } == SUCCESS && !before.is_null();
        let mut context = null_mut();
        // SAFETY: a context is written to `context`; `Drop` gives it back.
        runtime.check("open", unsafe { (f.new_context)(&mut context, wanted) })?;
        if has_one {
            // SAFETY: it was this thread's when this began; making another one has changed that.
            unsafe { (f.set_context)(before) };
        }
        Ok(Arc::new(AscendContext { context: LibraryHandle(context), runtime }))
    }

    /// Makes it this thread's.
    pub(crate) fn enter(&self) -> Result<CurrentContext<'_>, DriverError> {
        let f = &self.runtime.functions;
        let mut before = null_mut();
        // SAFETY: a context is written to `before`; of a thread without one it stays null, which is no failure here.
        unsafe { (f.current_context)(&mut before) };
        if before != self.context.0 {
            // SAFETY: the context is there until this is dropped.
            self.runtime.check("enter", unsafe { (f.set_context)(self.context.0) })?;
        }
        Ok(CurrentContext { context: self, before: LibraryHandle(before), _thread: PhantomData })
    }

    /// Gives something back where the runtime may still have it: of a context that is lost nothing is left.
    fn give_back(&self, call: impl FnOnce(&RuntimeFunctions) -> i32) {
        if let Ok(_entered) = self.enter() {
            call(&self.runtime.functions);
        }
    }
}

impl Drop for AscendContext {
    fn drop(&mut self) {
        // SAFETY: it was made by `new`, and nothing made of it is left: all of that keeps it.
        unsafe { (self.runtime.functions.drop_context)(self.context.0) };
    }
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        if self.before.0 != self.context.context.0 && !self.before.0.is_null() {
            // SAFETY: it was this thread's when the guard was made; a context that is gone since is refused by the runtime.
            unsafe { (self.context.runtime.functions.set_context)(self.before.0) };
        }
    }
}

/// Memory of a device.
pub(crate) struct NpuMemory {
    context: Arc<AscendContext>,
    address: LibraryHandle,
    bytes: u64,
}

/// Bytes of it, which lie in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NpuRange {
    address: u64,
    bytes: usize,
}

impl NpuRange {
    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }

    /// Where it begins, for the libraries alone: the host reads nothing there.
    pub(crate) fn pointer(self) -> LibraryPointer {
        std::ptr::without_provenance_mut(self.address as usize)
    }

    /// What is behind so many of its bytes; none where they are not among them.
    pub(crate) fn behind(self, offset: u64) -> Option<NpuRange> {
        let left = self.bytes.checked_sub(usize::try_from(offset).ok()?)?;
        Some(NpuRange { address: self.address + offset, bytes: left })
    }

    /// Its first bytes; none where it has less.
    pub(crate) fn first(self, bytes: u64) -> Option<NpuRange> {
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= self.bytes)?;
        Some(NpuRange { bytes, ..self })
    }

    fn overlaps(self, other: NpuRange) -> bool {
        let end = |range: NpuRange| range.address + range.bytes as u64;
        self.address.max(other.address) < end(self).min(end(other))
    }
}

impl NpuMemory {
    /// Takes memory.
    pub(crate) fn new(context: &Arc<AscendContext>, bytes: u64) -> Result<NpuMemory, DriverError> {
        let wanted = usize::try_from(bytes).map_err(|e| refused("alloc", e.to_string()))?;
        let _entered = context.enter()?;
        let (f, mut address) = (&context.runtime.functions, null_mut());
        // SAFETY: an address of the device is written to `address`. Of no byte there is no memory: one is taken.
        match unsafe { (f.alloc)(&mut address, wanted.max(1), HUGE_PAGES_FIRST) } {
            OUT_OF_MEMORY => {
                let (mut free, mut total) = (0, 0);
                // SAFETY: two numbers are written.
                let told = unsafe { (f.free_memory)(HBM, &mut free, &mut total) } == SUCCESS;
                let known = |bytes: usize| told.then_some(bytes as u64);
                Err(DriverError::OutOfMemory { wanted: bytes, free: known(free), total: known(total) })
            }
            code => {
                context.runtime.check("alloc", code)?;
                Ok(NpuMemory { context: context.clone(), address: LibraryHandle(address), bytes })
            }
        }
    }

    /// Bytes of it; none where they are not among them.
    pub(crate) fn range(&self, offset: u64, bytes: u64) -> Option<NpuRange> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        let bytes = usize::try_from(bytes).ok().filter(|_| inside)?;
        Some(NpuRange { address: self.address.0.addr() as u64 + offset, bytes })
    }
}

impl Drop for NpuMemory {
    fn drop(&mut self) {
        // SAFETY: it was given by `alloc` and goes back once; whoever dropped it knows that nothing on a stream has it.
        self.context.give_back(|f| unsafe { (f.free)(self.address.0) });
    }
}

/// Page-locked memory of the host, zeroed, which the device reads and writes by itself.
pub(crate) struct LockedMemory {
    context: Arc<AscendContext>,
    address: LibraryHandle,
    bytes: usize,
}

impl LockedMemory {
    pub(crate) fn new(context: &Arc<AscendContext>, bytes: usize) -> Result<LockedMemory, DriverError> {
        let _entered = context.enter()?;
        let mut address = null_mut();
        // SAFETY: an address of the host is written to `address`.
        let code = unsafe { (context.runtime.functions.alloc_host)(&mut address, bytes.max(1)) };
        context.runtime.check("staging", code)?;
        if address.is_null() {
            return Err(refused("staging", "the runtime gave no memory and no reason"));
        }
        // SAFETY: so many bytes are ours from now on, and nobody else has them.
        unsafe { std::ptr::write_bytes(address.cast::<u8>(), 0, bytes) };
        Ok(LockedMemory { context: context.clone(), address: LibraryHandle(address), bytes })
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
        self.context.give_back(|f| unsafe { (f.free_host)(self.address.0) });
    }
}

/// A moment of a stream, which is recorded once.
pub(crate) struct AscendEvent {
    context: Arc<AscendContext>,
    event: LibraryHandle,
}

impl AscendEvent {
    pub(crate) fn new(context: &Arc<AscendContext>) -> Result<AscendEvent, DriverError> {
        let _entered = context.enter()?;
        let mut event = null_mut();
        // SAFETY: an event is written to `event`.
        context.runtime.check("event", unsafe { (context.runtime.functions.new_event)(&mut event) })?;
        Ok(AscendEvent { context: context.clone(), event: LibraryHandle(event) })
    }

    /// Whether it has happened.
    pub(crate) fn has_happened(&self) -> Result<bool, DriverError> {
        let _entered = self.context.enter()?;
        let mut status = 0;
        // SAFETY: the event is ours; a number is written to `status`.
        let code = unsafe { (self.context.runtime.functions.query_event)(self.event.0, &mut status) };
        self.context.runtime.check("query", code).map(|()| status == HAPPENED)
    }
}

impl Drop for AscendEvent {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and goes back once.
        self.context.give_back(|f| unsafe { (f.drop_event)(self.event.0) });
    }
}

/// A queue of a device.
pub(crate) struct AscendStream {
    pub(crate) context: Arc<AscendContext>,
    stream: LibraryHandle,
}

impl AscendStream {
    pub(crate) fn new(context: &Arc<AscendContext>) -> Result<AscendStream, DriverError> {
        let _entered = context.enter()?;
        let (f, mut stream) = (&context.runtime.functions, null_mut());
        // SAFETY: a stream is written to `stream`.
        context.runtime.check("stream", unsafe { (f.new_stream)(&mut stream) })?;
        let made = AscendStream { context: context.clone(), stream: LibraryHandle(stream) };
        // SAFETY: the stream is ours.
        context.runtime.check("stream", unsafe { (f.stop_on_failure)(stream, STOP_ON_FAILURE) })?;
        Ok(made)
    }

    /// What the libraries know it by.
    pub(crate) fn handle(&self) -> LibraryPointer {
        self.stream.0
    }

    fn submit(
        &self,
        call: &'static str,
        run: impl FnOnce(&RuntimeFunctions, LibraryPointer) -> i32,
    ) -> Result<(), DriverError> {
        let _entered = self.context.enter()?;
        self.context.runtime.check(call, run(&self.context.runtime.functions, self.stream.0))
    }

    /// Submits: the first bytes of page-locked memory to as many of the device as the range has. Whoever calls keeps the memory.
    pub(crate) fn upload(&self, from: &LockedMemory, to: NpuRange) -> Result<(), DriverError> {
        fits("upload", to.bytes, from.bytes)?;
        let (source, bytes) = (from.address.0.cast_const(), to.bytes);
        // SAFETY: both are so long; the caller gives the memory to `NpuQueue::submit`, which keeps it until then.
        self.submit("upload", |f, stream| unsafe { (f.copy)(to.pointer(), bytes, source, bytes, TO_DEVICE, stream) })
    }

    /// Submits: bytes of the device to the beginning of page-locked memory, which the caller keeps until they are there.
    pub(crate) fn download(&self, from: NpuRange, to: &LockedMemory) -> Result<(), DriverError> {
        fits("download", from.bytes, to.bytes)?;
        let (source, room) = (from.pointer().cast_const(), to.bytes);
        // SAFETY: the bytes fit; the caller gives the memory to `NpuQueue::submit`, which keeps it.
        self.submit("download", |f, stream| unsafe {
            (f.copy)(to.address.0, room, source, from.bytes, TO_HOST, stream)
        })
    }

    /// Submits a copy between parts of memory that do not overlap.
    pub(crate) fn copy(&self, from: NpuRange, to: NpuRange) -> Result<(), DriverError> {
        if from.bytes != to.bytes {
            return Err(refused("copy", format!("{} bytes are given for {}", from.bytes, to.bytes)));
        }
        if from.overlaps(to) {
            return Err(refused("copy", format!("{from:?} and {to:?} overlap")));
        }
        let source: *const c_void = from.pointer().cast_const();
        // SAFETY: both lie in memory of this device and are so long.
        self.submit("copy", |f, stream| unsafe {
            (f.copy)(to.pointer(), to.bytes, source, to.bytes, ON_DEVICE, stream)
        })
    }

    /// Submits: makes every byte this one.
    pub(crate) fn fill(&self, range: NpuRange, byte: u8) -> Result<(), DriverError> {
        // SAFETY: the bytes lie in memory of this device.
        self.submit("fill", |f, stream| unsafe {
            (f.fill)(range.pointer(), range.bytes, byte.into(), range.bytes, stream)
        })
    }

    /// Submits: the event happens when everything before has run.
    pub(crate) fn record(&self, event: &AscendEvent) -> Result<(), DriverError> {
        // SAFETY: both are ours.
        self.submit("signal", |f, stream| unsafe { (f.record_event)(event.event.0, stream) })
    }

    /// Waits until everything has run, so long at most; whether it has, and what was wrong with it.
    pub(crate) fn wait(&self, milliseconds: i32) -> Result<bool, DriverError> {
        let _entered = self.context.enter()?;
        // SAFETY: the stream is ours.
        match unsafe { (self.context.runtime.functions.wait_stream)(self.stream.0, milliseconds) } {
            NOT_YET => Ok(false),
            code => self.context.runtime.check("wait", code).map(|()| true),
        }
    }
}

impl Drop for AscendStream {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and goes back once; its queue has waited for what was submitted.
        self.context.give_back(|f| unsafe { (f.drop_stream)(self.stream.0) });
    }
}

fn fits(call: &'static str, bytes: usize, room: usize) -> Result<(), DriverError> {
    if bytes <= room { Ok(()) } else { Err(refused(call, format!("{bytes} bytes do not fit {room}"))) }
}
