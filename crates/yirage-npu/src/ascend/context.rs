//! The runtime's library and a device's context: every call into it, with what it takes checked by types.
//!
//! A context is a thread's current one for as long as a call needs it ([`AscendContext::enter`]).

use super::libraries::AscendRuntime;
use super::operators;
use super::status::{NOT_YET, OUT_OF_MEMORY, STARTED_BEFORE, SUCCESS};
use super::symbols::RuntimeFunctions;
use crate::operands::OperandMemory;
use crate::operators::OperatorCall;
use crate::range::NpuRange;
use crate::runtime::{AcceleratorRuntime, CopyDirection, LibraryHandle, MakerCollective};
use crate::status::refused;
use crate::symbols::LibraryPointer;
use std::marker::PhantomData;
use std::ptr::null_mut;
use yirage_collectives::CollectiveError;
use yirage_hal::driver::DriverError;

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
    pub(crate) fn new(runtime: AscendRuntime, ordinal: u32) -> Result<AscendContext, DriverError> {
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
        Ok(AscendContext { context: LibraryHandle::new(context), runtime })
    }

    /// Makes it this thread's.
    pub(crate) fn enter(&self) -> Result<CurrentContext<'_>, DriverError> {
        let f = &self.runtime.functions;
        let mut before = null_mut();
        // SAFETY: a context is written to `before`; of a thread without one it stays null, which is no failure here.
        unsafe { (f.current_context)(&mut before) };
        if before != self.context.pointer() {
            // SAFETY: the context is there until this is dropped.
            self.runtime.check("enter", unsafe { (f.set_context)(self.context.pointer()) })?;
        }
        Ok(CurrentContext { context: self, before: LibraryHandle::new(before), _thread: PhantomData })
    }

    /// Makes something.
    fn make(
        &self,
        call: &'static str,
        make: impl FnOnce(&RuntimeFunctions, &mut LibraryPointer) -> i32,
    ) -> Result<LibraryHandle, DriverError> {
        let _entered = self.enter()?;
        let mut made = null_mut();
        self.runtime.check(call, make(&self.runtime.functions, &mut made))?;
        Ok(LibraryHandle::new(made))
    }

    fn submit(&self, call: &'static str, run: impl FnOnce(&RuntimeFunctions) -> i32) -> Result<(), DriverError> {
        let _entered = self.enter()?;
        self.runtime.check(call, run(&self.runtime.functions))
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
        unsafe { (self.runtime.functions.drop_context)(self.context.pointer()) };
    }
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        if self.before.pointer() != self.context.context.pointer() && !self.before.pointer().is_null() {
            // SAFETY: it was this thread's when the guard was made; a context that is gone since is refused by the runtime.
            unsafe { (self.context.runtime.functions.set_context)(self.before.pointer()) };
        }
    }
}

impl AcceleratorRuntime for AscendContext {
    fn stay(&self) -> Result<(), DriverError> {
        self.enter().map(std::mem::forget)
    }

    fn alloc(&self, bytes: usize) -> Result<LibraryHandle, DriverError> {
        let _entered = self.enter()?;
        let (f, mut address) = (&self.runtime.functions, null_mut());
        // SAFETY: an address of the device is written to `address`.
        match unsafe { (f.alloc)(&mut address, bytes, HUGE_PAGES_FIRST) } {
            OUT_OF_MEMORY => {
                let (mut free, mut total) = (0, 0);
                // SAFETY: two numbers are written.
                let told = unsafe { (f.free_memory)(HBM, &mut free, &mut total) } == SUCCESS;
                let known = |bytes: usize| told.then_some(bytes as u64);
                Err(DriverError::OutOfMemory { wanted: bytes as u64, free: known(free), total: known(total) })
            }
            code => self.runtime.check("alloc", code).map(|()| LibraryHandle::new(address)),
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
        // SAFETY: an event is written.
        self.make("event", |f, event| unsafe { (f.new_event)(event) })
    }

    unsafe fn drop_event(&self, event: LibraryHandle) {
        // SAFETY: what `AcceleratorRuntime::drop_event` is promised; `NpuEvent` gives it back once.
        self.give_back(|f| unsafe { (f.drop_event)(event.pointer()) });
    }

    unsafe fn has_happened(&self, event: LibraryHandle) -> Result<bool, DriverError> {
        let mut status = 0;
        // SAFETY: what `AcceleratorRuntime::has_happened` is promised, of which `NpuEvent` holds one; a number is written to `status`.
        self.submit("query", |f| unsafe { (f.query_event)(event.pointer(), &mut status) })?;
        Ok(status == HAPPENED)
    }

    fn new_stream(&self) -> Result<LibraryHandle, DriverError> {
        // SAFETY: a stream is written.
        let stream = self.make("stream", |f, stream| unsafe { (f.new_stream)(stream) })?;
        // SAFETY: the stream is ours.
        let told = self.submit("stream", |f| unsafe { (f.stop_on_failure)(stream.pointer(), STOP_ON_FAILURE) });
        told.map(|()| stream).inspect_err(|_| {
            // SAFETY: it was made above, and nobody has it.
            unsafe { self.drop_stream(stream) };
        })
    }

    unsafe fn drop_stream(&self, stream: LibraryHandle) {
        // SAFETY: what `AcceleratorRuntime::drop_stream` is promised; `NpuStream` gives it back once.
        self.give_back(|f| unsafe { (f.drop_stream)(stream.pointer()) });
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
        self.submit(call, |f| unsafe { (f.copy)(to, bytes, from.cast_const(), bytes, kind, stream.pointer()) })
    }

    unsafe fn fill(
        &self,
        stream: LibraryHandle,
        to: LibraryPointer,
        bytes: usize,
        byte: u8,
    ) -> Result<(), DriverError> {
        // SAFETY: what `AcceleratorRuntime::fill` is promised; `NpuStream` holds what is on the stream.
        self.submit("fill", |f| unsafe { (f.fill)(to, bytes, byte.into(), bytes, stream.pointer()) })
    }

    unsafe fn record(&self, stream: LibraryHandle, event: LibraryHandle) -> Result<(), DriverError> {
        // SAFETY: what `AcceleratorRuntime::record` is promised; `NpuStream` holds what is on the stream.
        self.submit("signal", |f| unsafe { (f.record_event)(event.pointer(), stream.pointer()) })
    }

    unsafe fn wait(&self, stream: LibraryHandle, milliseconds: i32) -> Result<bool, DriverError> {
        let _entered = self.enter()?;
        // SAFETY: what `AcceleratorRuntime::wait` is promised; `NpuStream` holds what is on the stream.
        match unsafe { (self.runtime.functions.wait_stream)(stream.pointer(), milliseconds) } {
            NOT_YET => Ok(false),
            code => self.runtime.check("wait", code).map(|()| true),
        }
    }

    fn wanted_workspace(&self, call: &OperatorCall, memory: &OperandMemory<'_>) -> Result<u64, DriverError> {
        let _entered = self.enter()?;
        operators::wanted_workspace(&self.runtime, call, memory)
    }

    unsafe fn run_operator(
        &self,
        stream: LibraryHandle,
        call: &OperatorCall,
        memory: &OperandMemory<'_>,
        working: Option<NpuRange>,
    ) -> Result<(), DriverError> {
        let _entered = self.enter()?;
        operators::submit(&self.runtime, stream, call, memory, working)
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
