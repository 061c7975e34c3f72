//! The driver's library and a device's context: every call into it, with what it takes checked by types.
//!
//! Whoever calls has entered the context ([`CudaContext::enter`]), which is this thread's then and until the guard goes. A handle is
//! of the context that made it and goes back to it once, when its owner is dropped; the owners keep the context. Unknown here:
//! when the device has done what it was told.

use crate::status::{self, NOT_READY, OUT_OF_MEMORY, SUCCESS, refused};
use crate::symbols::{DriverFunctions, ErrorWords, ExtendedFunctions, ExtendedLaunch, LaunchAttribute, RawHandle};
use crate::vendor::{PeerName, VendorRuntime};
use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::Arc;
use yirage_collectives::{CollectiveError, DeviceCommunicator, DeviceElements};
use yirage_comm::CollectiveKind;
use yirage_hal::driver::DriverError;
use yirage_probe::{DriverLibrary, ProbeError};

/// `CU_STREAM_NON_BLOCKING`: it waits for no other stream by itself.
const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIME: u32 = 2;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: what other threads do meanwhile is theirs.
const OF_THIS_THREAD: i32 = 1;
/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: i32 = 2;
/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const PROGRAMMATIC_SERIALIZATION: i32 = 6;

/// A number of `CUdevice_attribute`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeviceAttribute {
    MaxThreadsPerBlock = 1,
    MaxGridX = 5,
    MaxGridY = 6,
    MaxGridZ = 7,
    SharedBytesPerBlock = 8,
    Multiprocessors = 16,
    ComputeMode = 20,
    EccEnabled = 32,
    CooperativeLaunch = 95,
}

/// A handle of the driver's, of no use to this program but to be given back to it.
#[derive(Clone, Copy)]
struct Handle(RawHandle);

// SAFETY: the driver's handles may be used by any thread whose current context is theirs (CUDA driver API, 'Initialization').
unsafe impl Send for Handle {}
// SAFETY: as for `Send`; the driver locks for itself.
unsafe impl Sync for Handle {}

/// The driver, started.
pub(crate) struct CudaRuntime {
    functions: DriverFunctions,
    /// What is told of launches that are more than ordinary, where the driver has it.
    extended: Option<ExtendedFunctions>,
    words: [WordsOfError; 2],
    peers: PeerName,
}

/// A function that gives the driver's name or text of an answer.
#[derive(Clone, Copy)]
enum WordsOfError {
    /// By an address.
    Written(unsafe extern "C" fn(i32, *mut *const c_char) -> i32),
    /// As what it returns.
    Returned(unsafe extern "C" fn(i32) -> *const c_char),
}

impl WordsOfError {
    /// The name's and the text's.
    fn of(library: &DriverLibrary, words: ErrorWords) -> Result<[WordsOfError; 2], ProbeError> {
        // SAFETY: the types are those of the functions of these names in the vendor's headers.
        unsafe {
            Ok(match words {
                ErrorWords::Written { name, text } => {
                    [WordsOfError::Written(library.function(name)?), WordsOfError::Written(library.function(text)?)]
                }
                ErrorWords::Returned { name, text } => {
                    [WordsOfError::Returned(library.function(name)?), WordsOfError::Returned(library.function(text)?)]
                }
            })
        }
    }

    /// The words for an answer, if it has some.
    fn say(self, code: i32) -> Option<String> {
        let text = match self {
            WordsOfError::Written(call) => {
                let mut text = std::ptr::null();
                // SAFETY: the address of a text is written to `text`, or none is.
                let told = unsafe { call(code, &mut text) };
                if told == SUCCESS { text } else { std::ptr::null() }
            }
            // SAFETY: it takes a number alone.
            WordsOfError::Returned(call) => unsafe { call(code) },
        };
        // SAFETY: the driver's texts end with a 0 and stay.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}

impl CudaRuntime {
    /// The driver of a library, which stays loaded.
    pub(crate) fn new(library: &DriverLibrary, vendor: &VendorRuntime) -> Result<CudaRuntime, ProbeError> {
        let functions = DriverFunctions::of(library, &vendor.driver)?;
        let extended = vendor.extended.as_ref().and_then(|(_, names)| ExtendedFunctions::of(library, names).ok());
        Ok(CudaRuntime { functions, extended, words: WordsOfError::of(library, vendor.words)?, peers: vendor.peers })
    }

    /// Whether the driver is told of launches that may begin early, and of cooperative ones.
    pub(crate) fn is_extended(&self) -> bool {
        self.extended.is_some()
    }

    /// What the driver calls an answer.
    fn said(&self, code: i32) -> String {
        let words: Vec<String> = self.words.iter().filter_map(|words| words.say(code)).collect();
        if words.is_empty() { "an error that the driver has no name for".into() } else { words.join(", ") }
    }

    fn check(&self, call: &'static str, code: i32) -> Result<(), DriverError> {
        if code == SUCCESS { Ok(()) } else { Err(status::error(call, code, &self.said(code))) }
    }
}

/// The context that a process has of a device: the one that other libraries in it use too.
pub(crate) struct CudaContext {
    runtime: CudaRuntime,
    device: i32,
    context: Handle,
}

/// The context is this thread's current one for as long as this lives, and what was before is so again then.
pub(crate) struct EnteredContext<'a> {
    context: &'a CudaContext,
    before: Handle,
    /// It is this thread's.
    _thread: PhantomData<*const ()>,
}

impl CudaContext {
    /// Takes the context of the device of an ordinal.
    pub(crate) fn new(runtime: CudaRuntime, ordinal: u32) -> Result<Arc<CudaContext>, DriverError> {
        let wanted = i32::try_from(ordinal).map_err(|e| refused("open", e.to_string()))?;
        let (mut device, mut context) = (0, null_mut());
        let f = &runtime.functions;
        // SAFETY: it takes a number alone.
        runtime.check("open", unsafe { (f.start)(0) })?;
        // SAFETY: a device is written to `device`.
        runtime.check("open", unsafe { (f.device)(&mut device, wanted) })?;
        // SAFETY: a context is written to `context`; `Drop` gives it back.
        runtime.check("open", unsafe { (f.retain_context)(&mut context, device) })?;
        Ok(Arc::new(CudaContext { device, context: Handle(context), runtime }))
    }

    /// Makes it this thread's.
    pub(crate) fn enter(&self) -> Result<EnteredContext<'_>, DriverError> {
        let f = &self.runtime.functions;
        let mut before = null_mut();
        // SAFETY: a context, or null, is written to `before`.
        self.runtime.check("enter", unsafe { (f.current_context)(&mut before) })?;
        if before != self.context.0 {
            // SAFETY: the context is held until this is dropped.
            self.runtime.check("enter", unsafe { (f.set_context)(self.context.0) })?;
        }
        Ok(EnteredContext { context: self, before: Handle(before), _thread: PhantomData })
    }

    /// Makes it this thread's for as long as the thread lives: for one that a library is called on.
    pub(crate) fn stay(&self) -> Result<(), DriverError> {
        self.enter().map(std::mem::forget)
    }

    /// A fact of the device; of one that it does not tell, why.
    pub(crate) fn attribute(&self, of: DeviceAttribute) -> Result<u32, DriverError> {
        let mut value = 0;
        // SAFETY: a number is written to `value`.
        let told = unsafe { (self.runtime.functions.attribute)(&mut value, of as i32, self.device) };
        self.runtime.check("attribute", told)?;
        u32::try_from(value).map_err(|_| refused("attribute", format!("{of:?}: expected a count, got {value}")))
    }

    /// Whether all blocks of a launch may be on the device at once, and the driver is told so.
    pub(crate) fn is_cooperative(&self) -> Result<bool, DriverError> {
        Ok(self.runtime.is_extended() && self.attribute(DeviceAttribute::CooperativeLaunch)? != 0)
    }

    /// Blocks of so many threads of a function that a multiprocessor has room for at once.
    pub(crate) fn resident_blocks(&self, function: CudaFunction, threads: u32) -> Result<u32, DriverError> {
        let none = || refused("occupancy", "the driver is told of no cooperative launches");
        let extended = self.runtime.extended.as_ref().ok_or_else(none)?;
        let threads = i32::try_from(threads).map_err(|e| refused("occupancy", e.to_string()))?;
        let _entered = self.enter()?;
        let mut blocks = 0;
        // SAFETY: a number is written to `blocks`; the function is of a module of this context, which whoever calls has.
        self.runtime
            .check("occupancy", unsafe { (extended.resident_blocks)(&mut blocks, function.0.0, threads, 0) })?;
        u32::try_from(blocks).map_err(|_| refused("occupancy", format!("expected a count, got {blocks}")))
    }

    /// What a copy from one device to another names it by. A number goes where a pointer of CUDA's does: a function that takes 32
    /// bits reads the lower half of the same register.
    fn peer_name(&self) -> RawHandle {
        match self.runtime.peers {
            PeerName::Context => self.context.0,
            PeerName::Ordinal => std::ptr::without_provenance_mut(self.device as usize),
        }
    }

    /// Gives something back where the driver may still have it: of a context that is lost nothing is left.
    fn give_back(&self, call: impl FnOnce(&DriverFunctions) -> i32) {
        if let Ok(_entered) = self.enter() {
            call(&self.runtime.functions);
        }
    }
}

impl Drop for CudaContext {
    fn drop(&mut self) {
        if let Some(release) = self.runtime.functions.release_context {
            // SAFETY: it was retained by `new`, and nothing made of it is left: all of that keeps it.
            unsafe { release(self.device) };
        }
    }
}

impl Drop for EnteredContext<'_> {
    fn drop(&mut self) {
        if self.before.0 != self.context.context.0 {
            // SAFETY: it was this thread's when the guard was made; a context that is gone since is refused by the driver.
            unsafe { (self.context.runtime.functions.set_context)(self.before.0) };
        }
    }
}

/// Memory of a device.
pub(crate) struct DeviceMemory {
    context: Arc<CudaContext>,
    address: u64,
    bytes: u64,
}

/// Bytes of it, which lie in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DeviceRange {
    address: u64,
    bytes: usize,
}

impl DeviceRange {
    /// Where it begins on the device.
    pub(crate) fn address(self) -> u64 {
        self.address
    }

    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }

    pub(crate) fn overlaps(self, other: DeviceRange) -> bool {
        let end = |range: DeviceRange| range.address + range.bytes as u64;
        self.address.max(other.address) < end(self).min(end(other))
    }
}

impl DeviceMemory {
    /// Takes memory.
    pub(crate) fn new(context: &Arc<CudaContext>, bytes: u64) -> Result<DeviceMemory, DriverError> {
        let wanted = usize::try_from(bytes).map_err(|e| refused("alloc", e.to_string()))?;
        let _entered = context.enter()?;
        let (f, mut address) = (&context.runtime.functions, 0);
        // SAFETY: an address of the device is written to `address`.
        match unsafe { (f.alloc)(&mut address, wanted) } {
            OUT_OF_MEMORY => {
                let (mut free, mut total) = (0, 0);
                // SAFETY: two numbers are written.
                let told = unsafe { (f.free_memory)(&mut free, &mut total) } == SUCCESS;
                let known = |bytes: usize| told.then_some(bytes as u64);
                Err(DriverError::OutOfMemory { wanted: bytes, free: known(free), total: known(total) })
            }
            code => {
                context.runtime.check("alloc", code)?;
                Ok(DeviceMemory { context: context.clone(), address, bytes })
            }
        }
    }

    /// Bytes of it; none where they are not among them.
    pub(crate) fn range(&self, offset: u64, bytes: u64) -> Option<DeviceRange> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        let bytes = usize::try_from(bytes).ok().filter(|_| inside)?;
        Some(DeviceRange { address: self.address + offset, bytes })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: it was given by `alloc` and goes back once; whoever dropped it knows that nothing on a stream has it.
        self.context.give_back(|f| unsafe { (f.free)(self.address) });
    }
}

/// Page-locked memory of the host, zeroed, which the device reads and writes by itself.
pub(crate) struct PinnedMemory {
    context: Arc<CudaContext>,
    address: Handle,
    bytes: usize,
}

impl PinnedMemory {
    pub(crate) fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<PinnedMemory, DriverError> {
        let _entered = context.enter()?;
        let mut address = null_mut();
        // SAFETY: an address of the host is written to `address`.
        let code = unsafe { (context.runtime.functions.alloc_host)(&mut address, bytes.max(1), 0) };
        if code == OUT_OF_MEMORY {
            return Err(refused("staging", format!("{bytes} bytes of the host cannot be page-locked (`ulimit -l`)")));
        }
        context.runtime.check("staging", code)?;
        if address.is_null() {
            return Err(refused("staging", "the driver gave no memory and no reason"));
        }
        // SAFETY: so many bytes are ours from now on, and nobody else has them.
        unsafe { std::ptr::write_bytes(address.cast::<u8>(), 0, bytes) };
        Ok(PinnedMemory { context: context.clone(), address: Handle(address), bytes })
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The bytes, where no stream is writing them.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `new` has given and zeroed them; `Download::take` and `StagingMemory` read only what no stream has any more.
        unsafe { std::slice::from_raw_parts(self.address.0.cast(), self.bytes) }
    }

    /// The bytes, to write.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`; a stream that reads them holds a handle of its own, so that nobody has the only one.
        unsafe { std::slice::from_raw_parts_mut(self.address.0.cast(), self.bytes) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: it was given by `alloc_host` and goes back once.
        self.context.give_back(|f| unsafe { (f.free_host)(self.address.0) });
    }
}

/// A moment of a stream.
pub(crate) struct CudaEvent {
    context: Arc<CudaContext>,
    event: Handle,
}

impl CudaEvent {
    /// An event; the time when it happens is known of one that is `timed`.
    pub(crate) fn new(context: &Arc<CudaContext>, timed: bool) -> Result<CudaEvent, DriverError> {
        let _entered = context.enter()?;
        let mut event = null_mut();
        // SAFETY: an event is written to `event`.
        let code = unsafe { (context.runtime.functions.new_event)(&mut event, if timed { 0 } else { WITHOUT_TIME }) };
        context.runtime.check("event", code)?;
        Ok(CudaEvent { context: context.clone(), event: Handle(event) })
    }

    /// Whether it has happened since it was recorded last.
    pub(crate) fn has_happened(&self) -> Result<bool, DriverError> {
        let _entered = self.context.enter()?;
        // SAFETY: the event is ours.
        match unsafe { (self.context.runtime.functions.query_event)(self.event.0) } {
            NOT_READY => Ok(false),
            code => self.context.runtime.check("query", code).map(|()| true),
        }
    }

    /// Milliseconds from an earlier event to this one. Both have happened, and both are timed.
    pub(crate) fn since(&self, earlier: &CudaEvent) -> Result<f32, DriverError> {
        let _entered = self.context.enter()?;
        let mut elapsed = 0.0;
        // SAFETY: both events are ours; a number is written to `elapsed`.
        let code = unsafe { (self.context.runtime.functions.elapsed)(&mut elapsed, earlier.event.0, self.event.0) };
        self.context.runtime.check("elapsed", code).map(|()| elapsed)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and goes back once. The driver keeps what a stream still waits for.
        self.context.give_back(|f| unsafe { (f.drop_event)(self.event.0) });
    }
}

/// A function of a module.
#[derive(Clone, Copy)]
pub(crate) struct CudaFunction(Handle);

/// Code of the device.
pub(crate) struct CudaModule {
    context: Arc<CudaContext>,
    module: Handle,
}

impl CudaModule {
    /// Gives code to the device.
    pub(crate) fn new(context: &Arc<CudaContext>, code: &[u8]) -> Result<CudaModule, DriverError> {
        let _entered = context.enter()?;
        let mut module = null_mut();
        // SAFETY: a module is written to `module`. `code` is what the compiler has made, whole, as it
        // was or as a checksum of `code_store.rs` finds it: it tells its own length.
        let answer = unsafe { (context.runtime.functions.load_module)(&mut module, code.as_ptr().cast()) };
        context.runtime.check("module", answer)?;
        Ok(CudaModule { context: context.clone(), module: Handle(module) })
    }

    /// Its function of this name, which is its as long as it is there.
    pub(crate) fn function(&self, name: &str) -> Result<CudaFunction, DriverError> {
        let text = CString::new(name).map_err(|e| refused("module", e.to_string()))?;
        let _entered = self.context.enter()?;
        let mut function = null_mut();
        // SAFETY: the module is ours, the text ends with a 0; a function is written to `function`.
        let code = unsafe { (self.context.runtime.functions.function)(&mut function, self.module.0, text.as_ptr()) };
        self.context.runtime.check("module", code)?;
        Ok(CudaFunction(Handle(function)))
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and goes back once; streams and graphs that run its functions keep it.
        self.context.give_back(|f| unsafe { (f.unload_module)(self.module.0) });
    }
}

/// When and where the blocks of a launch run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LaunchMode {
    /// Behind the launch ahead of it.
    Ordinary,
    /// It may begin before the launch ahead of it has ended.
    Early,
    /// All of them are on the device at once.
    Cooperative,
}

/// A launch of a function.
pub(crate) struct FunctionLaunch<'a> {
    pub(crate) function: CudaFunction,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) mode: LaunchMode,
    /// Where each of its pointers points to, in the order of its parameters; as many as it has.
    pub(crate) pointers: &'a [DeviceRange],
}

/// Commands that the device runs at the price of one.
pub(crate) struct CudaGraph {
    context: Arc<CudaContext>,
    executable: Handle,
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        // SAFETY: it was made by `end_capture` and goes back once; a stream that runs it keeps it.
        self.context.give_back(|f| unsafe { (f.drop_executable)(self.executable.0) });
    }
}

/// A queue of a device.
pub(crate) struct CudaStream {
    context: Arc<CudaContext>,
    stream: Handle,
}

impl CudaStream {
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<CudaStream, DriverError> {
        let _entered = context.enter()?;
        let mut stream = null_mut();
        // SAFETY: a stream is written to `stream`.
        let code = unsafe { (context.runtime.functions.new_stream)(&mut stream, NON_BLOCKING) };
        context.runtime.check("stream", code)?;
        Ok(CudaStream { context: context.clone(), stream: Handle(stream) })
    }

    fn submit(
        &self,
        call: &'static str,
        run: impl FnOnce(&DriverFunctions, RawHandle) -> i32,
    ) -> Result<(), DriverError> {
        let _entered = self.context.enter()?;
        self.context.runtime.check(call, run(&self.context.runtime.functions, self.stream.0))
    }

    /// Submits: bytes of the host to as many of the device. Whoever calls keeps them until they are there.
    pub(crate) fn upload(&self, from: &[u8], to: DeviceRange) -> Result<(), DriverError> {
        same_length("upload", from.len(), to.bytes)?;
        // SAFETY: both are so long; the caller gives the bytes to `StreamQueue::submit`, which keeps them until then.
        self.submit("upload", |f, stream| unsafe { (f.upload)(to.address, from.as_ptr().cast(), from.len(), stream) })
    }

    /// Submits: bytes of the device to the beginning of page-locked memory, which the caller keeps until they are there.
    pub(crate) fn download(&self, from: DeviceRange, to: &PinnedMemory) -> Result<(), DriverError> {
        if from.bytes > to.bytes {
            return Err(refused("download", format!("{} bytes do not fit {}", from.bytes, to.bytes)));
        }
        // SAFETY: the bytes fit; the caller gives the memory to `StreamQueue::submit`, which keeps it; `take` reads it later.
        self.submit("download", |f, stream| unsafe { (f.download)(to.address.0, from.address, from.bytes, stream) })
    }

    /// Submits what the device does with others of its group: what the maker's library says of it, and what the driver does.
    pub(crate) fn collective(
        &self,
        communicator: &DeviceCommunicator,
        kind: CollectiveKind,
        elements: DeviceElements,
    ) -> Result<Result<(), CollectiveError>, DriverError> {
        let _entered = self.context.enter()?;
        // SAFETY: the stream is this device's; `CudaDriver::collective` has seen that both operands lie whole in memory of it,
        // which a stream keeps until it has come behind what was submitted.
        Ok(unsafe { communicator.submit(kind, elements, self.stream.0) }.map(drop))
    }

    /// Submits a copy between parts of memory that do not overlap.
    pub(crate) fn copy(&self, from: DeviceRange, to: DeviceRange) -> Result<(), DriverError> {
        same_length("copy", from.bytes, to.bytes)?;
        if from.overlaps(to) {
            return Err(refused("copy", format!("{from:?} and {to:?} overlap")));
        }
        // SAFETY: both lie in memory of this device and are so long.
        self.submit("copy", |f, stream| unsafe { (f.copy)(to.address, from.address, to.bytes, stream) })
    }

    /// Submits a copy from memory of another device to memory of this one.
    pub(crate) fn copy_from(&self, peer: &CudaContext, from: DeviceRange, to: DeviceRange) -> Result<(), DriverError> {
        same_length("copy", from.bytes, to.bytes)?;
        let (own, other) = (self.context.peer_name(), peer.peer_name());
        // SAFETY: each lies in memory of the device that is named, and both are so long.
        self.submit("copy", |f, stream| unsafe {
            (f.copy_peer)(to.address, own, from.address, other, to.bytes, stream)
        })
    }

    /// Submits: makes every byte this one.
    pub(crate) fn fill(&self, range: DeviceRange, byte: u8) -> Result<(), DriverError> {
        // SAFETY: the bytes lie in memory of this device.
        self.submit("fill", |f, stream| unsafe { (f.fill)(range.address, byte.into(), range.bytes, stream) })
    }

    /// Submits a launch, of a function with as many parameters as it has pointers: `LoadedKernel::launch` has counted them.
    pub(crate) fn launch(&self, launch: &FunctionLaunch<'_>) -> Result<(), DriverError> {
        let FunctionLaunch { function, grid, block, shared_bytes, mode, pointers } = launch;
        let mut addresses: Vec<u64> = pointers.iter().map(|range| range.address).collect();
        let mut parameters: Vec<*mut c_void> = addresses.iter_mut().map(|address| (&raw mut *address).cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (*grid, *block);
        let attribute = match mode {
            LaunchMode::Ordinary => None,
            LaunchMode::Early => Some(PROGRAMMATIC_SERIALIZATION),
            LaunchMode::Cooperative => Some(COOPERATIVE),
        };
        if let (Some(id), Some(functions)) = (attribute, &self.context.runtime.extended) {
            let allowed = LaunchAttribute { id, pad: [0; 4], value: 1, rest: [0; 60] };
            // SAFETY: as below; the driver reads the launch and its one attribute before it returns.
            return self.submit("launch", |_, stream| unsafe {
                let (grid, block, shared_bytes) = (*grid, *block, *shared_bytes);
                let launch = ExtendedLaunch { grid, block, shared_bytes, stream, attributes: &allowed, count: 1 };
                (functions.launch)(&launch, function.0.0, parameters.as_mut_ptr(), null_mut())
            });
        }
        // SAFETY: the driver reads as many parameters as the function has, each a pointer, before it returns.
        self.submit("launch", |f, stream| unsafe {
            let parameters = parameters.as_mut_ptr();
            (f.launch)(function.0.0, gx, gy, gz, bx, by, bz, *shared_bytes, stream, parameters, null_mut())
        })
    }

    /// Submits: the event happens when everything before has run.
    pub(crate) fn record(&self, event: &CudaEvent) -> Result<(), DriverError> {
        // SAFETY: both are ours.
        self.submit("signal", |f, stream| unsafe { (f.record_event)(event.event.0, stream) })
    }

    /// Submits: what comes later waits for an event, of this device or another.
    pub(crate) fn wait_for(&self, event: &CudaEvent) -> Result<(), DriverError> {
        // SAFETY: the stream is ours, and the event is there: whoever calls has it.
        self.submit("wait", |f, stream| unsafe { (f.wait_event)(stream, event.event.0, 0) })
    }

    /// Waits until everything has run.
    pub(crate) fn finish(&self) -> Result<(), DriverError> {
        // SAFETY: the stream is ours.
        self.submit("wait", |f, stream| unsafe { (f.wait_stream)(stream) })
    }

    /// Captures what `commands` submit to this stream instead of running it.
    pub(crate) fn capture(
        &self,
        commands: impl FnOnce(&CudaStream) -> Result<(), DriverError>,
    ) -> Result<CudaGraph, DriverError> {
        // SAFETY: the stream is ours.
        self.submit("capture", |f, stream| unsafe { (f.begin_capture)(stream, OF_THIS_THREAD) })?;
        let submitted = commands(self);
        let mut graph = null_mut();
        // SAFETY: the stream is ours and captures; a graph, or null, is written to `graph`.
        let ended = self.submit("capture", |f, stream| unsafe { (f.end_capture)(stream, &mut graph) });
        let mut executable = null_mut();
        let made = submitted.and(ended).and_then(|()| {
            // SAFETY: the graph is ours; what runs it is written to `executable`.
            self.submit("capture", |f, _| unsafe { (f.instantiate)(&mut executable, graph, 0) })
        });
        if !graph.is_null() {
            // SAFETY: it was made here and goes back once; what runs it needs it no more.
            self.context.give_back(|f| unsafe { (f.drop_graph)(graph) });
        }
        made.map(|()| CudaGraph { context: self.context.clone(), executable: Handle(executable) })
    }

    /// Submits all commands of a graph.
    pub(crate) fn replay(&self, graph: &CudaGraph) -> Result<(), DriverError> {
        // SAFETY: both are ours.
        self.submit("replay", |f, stream| unsafe { (f.launch_graph)(graph.executable.0, stream) })
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and goes back once; the driver lets what was submitted run.
        self.context.give_back(|f| unsafe { (f.drop_stream)(self.stream.0) });
    }
}

fn same_length(call: &'static str, given: usize, wanted: usize) -> Result<(), DriverError> {
    if given == wanted { Ok(()) } else { Err(refused(call, format!("{given} bytes are given for {wanted}"))) }
}
