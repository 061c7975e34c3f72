//! A device of CNRT with a handle of CNNL: every call into them, with what it takes checked by types.
//!
//! A device is a thread's current one for as long as a call needs it ([`MluDevice::enter`]). A handle of CNNL is used by one thread
//! at a time and is told its queue before each operator.

use super::numbers::LibraryNumbers;
use super::operators::{self, Cnnl, OperatorStep};
use super::status::{self, BUSY, NOT_READY, OUT_OF_MEMORY, SUCCESS};
use super::symbols::{OperatorFunctions, RuntimeFunctions};
use crate::operands::OperandMemory;
use crate::operators::{OperandElement, OperatorCall};
use crate::range::NpuRange;
use crate::runtime::{AcceleratorRuntime, CopyDirection, LibraryHandle, MakerCollective};
use crate::status::refused;
use crate::symbols::LibraryPointer;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use yirage_collectives::CollectiveError;
use yirage_hal::driver::DriverError;
use yirage_ir::{DType, Format};
use yirage_plan::KernelCapabilities;

/// `cnrtMemcpyHostToDev`.
const TO_DEVICE: i32 = 0;
/// `cnrtMemcpyDevToDev`.
const ON_DEVICE: i32 = 1;
/// `cnrtMemcpyDevToHost`.
const TO_HOST: i32 = 2;

/// A device, with a handle of this driver alone.
pub(super) struct MluDevice {
    runtime: RuntimeFunctions,
    operators: OperatorFunctions,
    ordinal: i32,
    handle: Mutex<LibraryHandle>,
    numbers: OnceLock<LibraryNumbers>,
}

/// The device is this thread's current one for as long as this lives; one that was so before is so again then.
pub(super) struct CurrentDevice<'a> {
    device: &'a MluDevice,
    before: i32,
    /// It is this thread's.
    _thread: PhantomData<*const ()>,
}

impl MluDevice {
    /// Makes a handle for the device of an ordinal.
    pub(super) fn new(
        runtime: RuntimeFunctions,
        operators: OperatorFunctions,
        ordinal: u32,
    ) -> Result<Arc<MluDevice>, DriverError> {
        let ordinal = i32::try_from(ordinal).map_err(|e| refused("open", e.to_string()))?;
        let handle = Mutex::new(LibraryHandle::new(null_mut()));
        let device = MluDevice { runtime, operators, ordinal, handle, numbers: OnceLock::new() };
        {
            let _entered = device.enter()?;
            let mut made = null_mut();
            // SAFETY: a handle is written; `Drop` gives it back.
            status::of_operators("cnnlCreate", unsafe { (device.operators.new_handle)(&mut made) })?;
            *device.lock() = LibraryHandle::new(made);
        }
        Ok(Arc::new(device))
    }

    /// Keeps the library's numbers, without which no operator is called.
    pub(super) fn know(&self, numbers: LibraryNumbers) {
        self.numbers.get_or_init(|| numbers);
    }

    /// Floats that operators compute with: those that the library turns into f32 and back.
    pub(super) fn floats(&self, capabilities: KernelCapabilities) -> Vec<DType> {
        let wide = OperandElement::F32;
        let both = |narrow| {
            let numbers = self.numbers.get();
            numbers.is_some_and(|n| n.cast(narrow, wide).is_some() && n.cast(wide, narrow).is_some())
        };
        let f16 = both(OperandElement::F16).then_some(DType::Stored(Format::F16));
        let bf16 = (capabilities.bf16 && both(OperandElement::BF16)).then_some(DType::Stored(Format::BF16));
        [Some(DType::F32), f16, bf16].into_iter().flatten().collect()
    }

    fn lock(&self) -> MutexGuard<'_, LibraryHandle> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it this thread's.
    fn enter(&self) -> Result<CurrentDevice<'_>, DriverError> {
        let mut before = self.ordinal;
        // SAFETY: a number is written; of a thread that has chosen none it is the first one's.
        let code = unsafe { (self.runtime.current_device)(&mut before) };
        if code != SUCCESS || before != self.ordinal {
            // SAFETY: it takes a number.
            status::of_runtime("enter", unsafe { (self.runtime.set_device)(self.ordinal) })?;
        }
        Ok(CurrentDevice { device: self, before, _thread: PhantomData })
    }

    /// Makes something.
    fn make(
        &self,
        call: &'static str,
        make: impl FnOnce(&RuntimeFunctions, &mut LibraryPointer) -> i32,
    ) -> Result<LibraryHandle, DriverError> {
        let _entered = self.enter()?;
        let mut made = null_mut();
        status::of_runtime(call, make(&self.runtime, &mut made))?;
        Ok(LibraryHandle::new(made))
    }

    fn submit(&self, call: &'static str, run: impl FnOnce(&RuntimeFunctions) -> i32) -> Result<(), DriverError> {
        let _entered = self.enter()?;
        status::of_runtime(call, run(&self.runtime))
    }

    /// Gives something back where the runtime may still have it: of a device that is lost nothing is left.
    fn give_back(&self, call: impl FnOnce(&RuntimeFunctions) -> i32) {
        if let Ok(_entered) = self.enter() {
            call(&self.runtime);
        }
    }

    /// Calls functions of CNNL whose work goes to a queue, or to none where the functions are only asked.
    ///
    /// # Safety
    /// The queue was given by `new_stream`.
    pub(super) unsafe fn with_handle<T>(
        &self,
        queue: Option<LibraryHandle>,
        call: impl FnOnce(&OperatorFunctions, LibraryPointer) -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        let _entered = self.enter()?;
        let handle = self.lock();
        if let Some(queue) = queue {
            // SAFETY: the handle is ours; `MluDevice::with_handle` is promised a queue of `new_stream`.
            let code = unsafe { (self.operators.set_queue)(handle.pointer(), queue.pointer()) };
            status::of_operators("cnnlSetQueue", code)?;
        }
        call(&self.operators, handle.pointer())
    }

    /// Asks or runs an operator.
    ///
    /// # Safety
    /// As [`MluDevice::with_handle`]; the memory is kept until the queue has run the operator.
    unsafe fn perform(
        &self,
        queue: Option<LibraryHandle>,
        call: &OperatorCall,
        memory: &OperandMemory<'_>,
        step: OperatorStep,
    ) -> Result<u64, DriverError> {
        let numbers = self.numbers.get().ok_or_else(|| refused("operator", "the library's numbers are not known"))?;
        // SAFETY: what `MluDevice::perform` is promised; `NpuStream` holds what is on the stream.
        unsafe {
            self.with_handle(queue, |f, handle| operators::perform(Cnnl { f, handle, numbers }, call, memory, step))
        }
    }
}

impl Drop for MluDevice {
    fn drop(&mut self) {
        let handle = *self.lock();
        if let Ok(_entered) = self.enter()
            && !handle.pointer().is_null()
        {
            // SAFETY: it was made by `new` and goes back once.
            unsafe { (self.operators.drop_handle)(handle.pointer()) };
        }
    }
}

impl Drop for CurrentDevice<'_> {
    fn drop(&mut self) {
        if self.before != self.device.ordinal {
            // SAFETY: it was this thread's when the guard was made.
            unsafe { (self.device.runtime.set_device)(self.before) };
        }
    }
}

impl AcceleratorRuntime for MluDevice {
    fn stay(&self) -> Result<(), DriverError> {
        self.enter().map(std::mem::forget)
    }

    fn alloc(&self, bytes: usize) -> Result<LibraryHandle, DriverError> {
        let _entered = self.enter()?;
        let (f, mut address) = (&self.runtime, null_mut());
        // SAFETY: an address of the device is written to `address`.
        match unsafe { (f.alloc)(&mut address, bytes) } {
            OUT_OF_MEMORY => {
                let (mut free, mut total) = (0, 0);
                // SAFETY: two numbers are written.
                let told = unsafe { (f.free_memory)(&mut free, &mut total) } == SUCCESS;
                let known = |bytes: usize| told.then_some(bytes as u64);
                Err(DriverError::OutOfMemory { wanted: bytes as u64, free: known(free), total: known(total) })
            }
            code => status::of_runtime("alloc", code).map(|()| LibraryHandle::new(address)),
        }
    }

    unsafe fn free(&self, memory: LibraryHandle) {
        // SAFETY: what `AcceleratorRuntime::free` is promised; `NpuMemory` gives it back once.
        self.give_back(|f| unsafe { (f.free)(memory.pointer()) });
    }

    fn alloc_host(&self, bytes: usize) -> Result<LibraryHandle, DriverError> {
        // SAFETY: an address of the host is written.
        self.make("staging", |f, address| unsafe { (f.alloc_host)(address, bytes) })
    }

    unsafe fn free_host(&self, memory: LibraryHandle) {
        // SAFETY: what `AcceleratorRuntime::free_host` is promised; `LockedMemory` gives it back once.
        self.give_back(|f| unsafe { (f.free_host)(memory.pointer()) });
    }

    fn new_event(&self) -> Result<LibraryHandle, DriverError> {
        // SAFETY: a notifier is written.
        self.make("notifier", |f, notifier| unsafe { (f.new_notifier)(notifier) })
    }

    unsafe fn drop_event(&self, event: LibraryHandle) {
        // SAFETY: what `AcceleratorRuntime::drop_event` is promised; `NpuEvent` gives it back once.
        self.give_back(|f| unsafe { (f.drop_notifier)(event.pointer()) });
    }

    unsafe fn has_happened(&self, event: LibraryHandle) -> Result<bool, DriverError> {
        let _entered = self.enter()?;
        // SAFETY: what `AcceleratorRuntime::has_happened` is promised; `NpuEvent` holds one.
        reached("query", unsafe { (self.runtime.query_notifier)(event.pointer()) })
    }

    fn new_stream(&self) -> Result<LibraryHandle, DriverError> {
        // SAFETY: a queue is written.
        self.make("queue", |f, queue| unsafe { (f.new_queue)(queue) })
    }

    unsafe fn drop_stream(&self, stream: LibraryHandle) {
        // SAFETY: what `AcceleratorRuntime::drop_stream` is promised; `NpuStream` gives it back once.
        self.give_back(|f| unsafe { (f.drop_queue)(stream.pointer()) });
    }

    unsafe fn copy(
        &self,
        stream: LibraryHandle,
        direction: CopyDirection,
        to: LibraryPointer,
        from: LibraryPointer,
        bytes: usize,
    ) -> Result<(), DriverError> {
        let (call, kind) = match direction {
            CopyDirection::ToDevice => ("upload", TO_DEVICE),
            CopyDirection::ToHost => ("download", TO_HOST),
            CopyDirection::OnDevice => ("copy", ON_DEVICE),
        };
        // SAFETY: what `AcceleratorRuntime::copy` is promised; `NpuStream` holds what is on the stream.
        self.submit(call, |f| unsafe { (f.copy)(to, from, bytes, stream.pointer(), kind) })
    }

    unsafe fn fill(
        &self,
        stream: LibraryHandle,
        to: LibraryPointer,
        bytes: usize,
        byte: u8,
    ) -> Result<(), DriverError> {
        // SAFETY: what `AcceleratorRuntime::fill` is promised; `NpuStream` holds what is on the stream.
        self.submit("fill", |f| unsafe { (f.fill)(to, byte.into(), bytes, stream.pointer()) })
    }

    unsafe fn record(&self, stream: LibraryHandle, event: LibraryHandle) -> Result<(), DriverError> {
        // SAFETY: what `AcceleratorRuntime::record` is promised; `NpuStream` holds what is on the stream.
        self.submit("signal", |f| unsafe { (f.place_notifier)(event.pointer(), stream.pointer()) })
    }

    unsafe fn wait(&self, stream: LibraryHandle, milliseconds: i32) -> Result<bool, DriverError> {
        let _entered = self.enter()?;
        // SAFETY: what `AcceleratorRuntime::wait` is promised; `NpuStream` holds what is on the stream.
        let told = reached("wait", unsafe { (self.runtime.query_queue)(stream.pointer()) })?;
        if !told {
            // There is no wait that ends after some time.
            std::thread::sleep(Duration::from_millis(u64::from(milliseconds.unsigned_abs())));
        }
        Ok(told)
    }

    fn wanted_workspace(&self, call: &OperatorCall, memory: &OperandMemory<'_>) -> Result<u64, DriverError> {
        // SAFETY: nothing is submitted.
        unsafe { self.perform(None, call, memory, OperatorStep::Ask) }
    }

    unsafe fn run_operator(
        &self,
        stream: LibraryHandle,
        call: &OperatorCall,
        memory: &OperandMemory<'_>,
        working: Option<NpuRange>,
    ) -> Result<(), DriverError> {
        // SAFETY: what `AcceleratorRuntime::run_operator` is promised; `NpuStream` holds what is on the stream.
        let done = unsafe { self.perform(Some(stream), call, memory, OperatorStep::Run(working)) };
        done.map(drop).map_err(|said| {
            // The operators' library does not tell of a device that is lost: its queue does.
            // SAFETY: what `AcceleratorRuntime::run_operator` is promised; `NpuStream` holds what is on the stream.
            match unsafe { self.wait(stream, 0) } {
                Err(lost @ DriverError::Lost(_)) => lost,
                _ => said,
            }
        })
    }

    unsafe fn collective(
        &self,
        stream: LibraryHandle,
        call: MakerCollective<'_>,
    ) -> Result<Result<(), CollectiveError>, DriverError> {
        let _entered = self.enter()?;
        let MakerCollective { communicator, kind, elements } = call;
        // SAFETY: what `AcceleratorRuntime::collective` is promised; `NpuStream::collective` says who holds the elements.
        Ok(unsafe { communicator.submit(kind, elements, stream.pointer()) }.map(drop))
    }
}

/// Whether everything has run; older versions say `BUSY` for what is not ready.
fn reached(call: &'static str, code: i32) -> Result<bool, DriverError> {
    match code {
        NOT_READY | BUSY => Ok(false),
        code => status::of_runtime(call, code).map(|()| true),
    }
}
