//! A device that a library has opened.

use crate::abi::{BackendFunctions, GraphFunctions, RawDevice, RawKernel, RawMessage, TimestampFunction};
use crate::library::PluginLibrary;
use crate::status::{Answer, ask, refused};
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use yirage_hal::driver::DriverError;

/// A device of a library, open until this is dropped.
pub(crate) struct OpenedDevice {
    library: Arc<PluginLibrary>,
    device: NonNull<RawDevice>,
    /// Held through every call but `reached` and `wait`: the header promises one thread at a time.
    turn: Mutex<()>,
}

// SAFETY: `turn` lets one thread in at a time; the header has `reached` and `wait` take any.
unsafe impl Send for OpenedDevice {}
// SAFETY: as for `Send`.
unsafe impl Sync for OpenedDevice {}

/// The turn of one thread, which alone calls functions of the device until it ends.
pub(crate) struct DeviceTurn<'a> {
    device: &'a OpenedDevice,
    _turn: MutexGuard<'a, ()>,
}

impl DeviceTurn<'_> {
    /// Calls a function that says in a message what is wrong.
    pub(crate) fn ask(
        &self,
        call: &'static str,
        function: impl FnOnce(&BackendFunctions, *mut RawDevice, *mut RawMessage) -> i32,
    ) -> Result<(), Answer> {
        ask(call, |message| function(&self.device.library.functions, self.device.raw(), message))
    }
}

impl OpenedDevice {
    pub(crate) fn open(library: Arc<PluginLibrary>, ordinal: u32) -> Result<Arc<OpenedDevice>, DriverError> {
        let mut device = null_mut();
        // SAFETY: a device is written to `device`; `Drop` closes it.
        ask("open", |message| unsafe { (library.functions.open)(ordinal, &mut device, message) })?;
        let device = NonNull::new(device).ok_or_else(|| refused("open", "the plug-in gave no device"))?;
        Ok(Arc::new(OpenedDevice { library, device, turn: Mutex::default() }))
    }

    /// Its functions.
    pub(crate) fn functions(&self) -> &BackendFunctions {
        &self.library.functions
    }

    /// What they take it by.
    pub(crate) fn raw(&self) -> *mut RawDevice {
        self.device.as_ptr()
    }

    /// What captures commands, where the library has it.
    pub(crate) fn graphs(&self) -> Option<&GraphFunctions> {
        self.library.graphs.as_ref()
    }

    /// What notes the device's time, where the library has it.
    pub(crate) fn timestamp(&self) -> Option<TimestampFunction> {
        self.library.timestamp
    }

    /// Lets one thread in.
    pub(crate) fn turn(&self) -> DeviceTurn<'_> {
        DeviceTurn { device: self, _turn: self.turn.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Has a source compiled.
    pub(crate) fn load(&self, source: &str, kernels: &[RawKernel]) -> Result<u64, DriverError> {
        let (mut module, _turn) = (0, self.turn());
        let load = self.library.functions.load;
        // SAFETY: the text and the kernels are as many as said, and names end with a 0; all live through the call.
        ask("load", |message| unsafe {
            let text = source.as_ptr().cast();
            load(self.device.as_ptr(), text, source.len(), kernels.as_ptr(), kernels.len(), &mut module, message)
        })?;
        Ok(module)
    }

    pub(crate) fn unload(&self, module: u64) {
        let _turn = self.turn();
        // SAFETY: `load` gave it, and it is given back once.
        unsafe { (self.library.functions.unload)(self.device.as_ptr(), module) };
    }

    /// Gives memory back.
    pub(crate) fn free(&self, buffer: u64) {
        let _turn = self.turn();
        // SAFETY: `alloc` gave it, and it is given back once: `PluginHostState::buffers` had it.
        unsafe { (self.library.functions.free)(self.device.as_ptr(), buffer) };
    }
}

impl Drop for OpenedDevice {
    fn drop(&mut self) {
        // SAFETY: `open` gave it, and whatever was made of it keeps this.
        unsafe { (self.library.functions.close)(self.device.as_ptr()) };
    }
}
