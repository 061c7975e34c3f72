//! The device: memory of the host, a queue that is the caller itself, and what its functions do.

use crate::abi::Slice;
use crate::module::{KernelOfSource, Module, compile, emulator};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Where buffers begin, in bytes.
const ALIGN: usize = 256;

/// A device that is open. `reached` and `wait` come from any thread: all that they need is beside the lock.
pub struct SoftwareDevice {
    pub signalled: AtomicU64,
    opened: Instant,
    state: Mutex<DeviceState>,
}

#[derive(Default)]
pub struct DeviceState {
    folder: PathBuf,
    buffers: HashMap<u64, Layout>,
    modules: HashMap<u64, Arc<Module>>,
    graphs: HashMap<u64, Arc<[Command]>>,
    last: u64,
    /// What commands are kept in, between `begin` and `end`.
    capture: Option<Vec<Command>>,
}

/// What the queue runs, and a graph keeps.
#[derive(Clone)]
pub enum Command {
    Launch { module: Arc<Module>, kernel: String, grid: [u32; 3], slices: Vec<Slice> },
    Copy { from: Slice, to: Slice },
    Fill { slice: Slice, byte: u8 },
}

/// Where a slice lies: a buffer's number is its address.
fn address(slice: Slice) -> *mut u8 {
    (slice.buffer + slice.offset) as usize as *mut u8
}

impl SoftwareDevice {
    /// A device with the emulator compiled.
    pub fn open() -> Result<SoftwareDevice, String> {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let emulator = emulator().ok_or("SOFTWARE_EMULATOR is not set")?;
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("yirage-software-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let state = Mutex::new(DeviceState { folder: folder.clone(), ..DeviceState::default() });
        let device = SoftwareDevice { signalled: AtomicU64::new(0), opened: Instant::now(), state };
        let grid = emulator.join("grid.cpp").display().to_string();
        let told = ["-std=c++17", "-O1", "-fPIC", "-U_FORTIFY_SOURCE", "-c", "-o", "grid.o", &grid];
        compile(&folder, &told.map(str::to_owned))?;
        Ok(device)
    }

    pub fn state(&self) -> MutexGuard<'_, DeviceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its clock, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.opened.elapsed().as_nanos() as u64
    }
}

impl DeviceState {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Memory of so many bytes; none where there is no room.
    pub fn alloc(&mut self, bytes: u64) -> Option<u64> {
        let layout = Layout::from_size_align(usize::try_from(bytes).ok()?.max(1), ALIGN).ok()?;
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc(layout) };
        if memory.is_null() {
            return None;
        }
        self.buffers.insert(memory as u64, layout);
        Some(memory as u64)
    }

    pub fn free(&mut self, buffer: u64) {
        if let Some(layout) = self.buffers.remove(&buffer) {
            // SAFETY: `alloc` gave it with this layout, and it goes back once.
            unsafe { dealloc(buffer as usize as *mut u8, layout) };
        }
    }

    pub fn load(&mut self, source: &str, kernels: Vec<KernelOfSource>) -> Result<u64, String> {
        let number = self.next();
        let module = Arc::new(Module::new(&self.folder, number, source, kernels)?);
        self.modules.insert(number, module);
        Ok(number)
    }

    pub fn unload(&mut self, module: u64) {
        self.modules.remove(&module);
    }

    pub fn module(&self, module: u64) -> Result<Arc<Module>, String> {
        self.modules.get(&module).cloned().ok_or_else(|| format!("there is no module {module}"))
    }

    /// Runs a command, or keeps it while a graph is captured.
    ///
    /// # Safety
    /// Every slice lies in a buffer that is held, until a graph that keeps the command is released.
    pub unsafe fn submit(&mut self, command: Command) -> Result<(), String> {
        match &mut self.capture {
            Some(kept) => {
                kept.push(command);
                Ok(())
            }
            // SAFETY: `submit` is promised the slices.
            None => unsafe { run(&command) },
        }
    }

    pub fn begin(&mut self) -> Result<(), String> {
        match self.capture.replace(Vec::new()) {
            None => Ok(()),
            Some(_) => Err("a capture was begun before".into()),
        }
    }

    pub fn end(&mut self) -> Result<u64, String> {
        let kept = self.capture.take().ok_or("no capture was begun")?;
        let number = self.next();
        self.graphs.insert(number, kept.into());
        Ok(number)
    }

    /// # Safety
    /// As of [`DeviceState::submit`], of all that the graph keeps.
    pub unsafe fn replay(&mut self, graph: u64) -> Result<(), String> {
        let commands = self.graphs.get(&graph).cloned().ok_or_else(|| format!("there is no graph {graph}"))?;
        // SAFETY: `replay` is promised what the commands name.
        commands.iter().try_for_each(|command| unsafe { run(command) })
    }

    pub fn release(&mut self, graph: u64) {
        self.graphs.remove(&graph);
    }
}

/// # Safety
/// As of [`DeviceState::submit`].
unsafe fn run(command: &Command) -> Result<(), String> {
    match command {
        Command::Launch { module, kernel, grid, slices } => {
            let buffers: Vec<*mut c_void> = slices.iter().map(|slice| address(*slice).cast()).collect();
            // SAFETY: what `DeviceState::submit` is promised: `launch` of the header gives a kernel the slices that it takes.
            unsafe { module.run(kernel, &buffers, *grid) }
        }
        Command::Copy { from, to } => {
            // SAFETY: both lie in buffers, are as long and do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(address(*from), address(*to), from.bytes as usize) };
            Ok(())
        }
        Command::Fill { slice, byte } => {
            // SAFETY: it lies in a buffer.
            unsafe { std::ptr::write_bytes(address(*slice), *byte, slice.bytes as usize) };
            Ok(())
        }
    }
}

/// Bytes of the host into a slice, or back.
///
/// # Safety
/// The slice lies in a buffer that is held, and the host's bytes are as many.
pub unsafe fn move_bytes(slice: Slice, host: *mut u8, to_device: bool) {
    let device = address(slice);
    let (from, to) = if to_device { (host, device) } else { (device, host) };
    // SAFETY: `move_bytes` is promised both; memory of the host is no buffer of a device.
    unsafe { std::ptr::copy_nonoverlapping(from, to, slice.bytes as usize) };
}

impl Drop for SoftwareDevice {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for buffer in state.buffers.keys().copied().collect::<Vec<u64>>() {
            state.free(buffer);
        }
        if let Err(error) = std::fs::remove_dir_all(&state.folder) {
            eprintln!("{} is left behind: {error}", state.folder.display());
        }
    }
}
