//! A backend of yirage in Rust: one device in software, whose kernels the system's C++ compiler compiles and the emulator of
//! `crates/yirage-sim/src/emulator/cpp` runs. It is a pattern: a maker's library has its own runtime in place of `device.rs`, and its
//! own run-time compiler in place of `module.rs`. `abi.rs` is the header, and this file what stands between.
//!
//! ```sh
//! cargo build --release --manifest-path examples/plugin/rust/Cargo.toml --target-dir target/plugin
//! export YIRAGE_PLUGINS=software=$PWD/target/plugin/release/libsoftware_device.so
//! export SOFTWARE_EMULATOR=$PWD/crates/yirage-sim/src/emulator/cpp
//! yirage devices
//! ```
//!
//! Its queue is the caller: whatever is submitted has run when the call returns. A function that panics ends the process, as a panic
//! at a function of C always does: what can go wrong is answered instead.

mod abi;
mod device;
mod module;

use abi::{
    Backend, Clock, DONE, DeviceInfo, FAILED, Graphs, Handle, Kernel, Launch, Message, NOT_YET, OUT_OF_MEMORY, Slice,
    VERSION,
};
use device::{Command, DeviceState, SoftwareDevice, move_bytes};
use module::KernelOfSource;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::Ordering;

/// Says what is wrong, as much as there is room for.
unsafe fn say(message: *mut Message, status: i32, why: &str) -> i32 {
    // SAFETY: the header gives a message with so many bytes.
    let message = unsafe { &*message };
    let bytes = &why.as_bytes()[..why.len().min(message.bytes.saturating_sub(1))];
    if message.bytes > 0 {
        // SAFETY: the text has room for the bytes and a 0.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), message.text.cast(), bytes.len());
            message.text.add(bytes.len()).write(0);
        }
    }
    status
}

/// What a function answers.
unsafe fn answer(message: *mut Message, done: Result<(), String>) -> i32 {
    match done {
        Ok(()) => DONE,
        // SAFETY: the message is as `yirage_backend.h` has it.
        Err(why) => unsafe { say(message, FAILED, &why) },
    }
}

/// Does something with the device, for one thread at a time.
unsafe fn with(device: Handle, message: *mut Message, act: impl FnOnce(&mut DeviceState) -> Result<(), String>) -> i32 {
    // SAFETY: the header gives a device that `open` gave and `close` has not taken.
    let done = act(&mut unsafe { &*device }.state());
    // SAFETY: the message is as `yirage_backend.h` has it.
    unsafe { answer(message, done) }
}

unsafe extern "C" fn count(devices: *mut u32, message: *mut Message) -> i32 {
    if module::emulator().is_none() {
        // SAFETY: the message is as `yirage_backend.h` has it.
        return unsafe {
            say(message, FAILED, "SOFTWARE_EMULATOR is not set: name the folder of the emulator's sources")
        };
    }
    // SAFETY: the header gives a number.
    unsafe { devices.write(1) };
    DONE
}

unsafe extern "C" fn describe(ordinal: u32, info: *mut DeviceInfo, message: *mut Message) -> i32 {
    if ordinal != 0 {
        // SAFETY: the message is as `yirage_backend.h` has it.
        return unsafe { say(message, FAILED, "there is one device") };
    }
    // SAFETY: the header gives fields that are all 0.
    let info = unsafe { &mut *info };
    let write = |field: &mut [u8], text: &str| field[..text.len()].copy_from_slice(text.as_bytes());
    write(&mut info.name, "Software device");
    write(&mut info.arch, "emulated");
    write(&mut info.driver_version, "1");
    write(&mut info.dialect, "musa");
    (info.cores, info.threads, info.shared_bytes) = (1, 1024, 48 << 10);
    (info.grid, info.software, info.in_flight) = ([0x7fff_ffff, 65535, 65535], 1, 1);
    DONE
}

unsafe extern "C" fn open(ordinal: u32, opened: *mut Handle, message: *mut Message) -> i32 {
    let device = if ordinal == 0 { SoftwareDevice::open() } else { Err("there is one device".into()) };
    // SAFETY: the header gives where the device goes, and the message.
    unsafe { answer(message, device.map(|device| opened.write(Box::into_raw(Box::new(device))))) }
}

unsafe extern "C" fn close(device: Handle) {
    // SAFETY: `open` gave it, and it is closed once.
    drop(unsafe { Box::from_raw(device) });
}

unsafe extern "C" fn alloc(device: Handle, bytes: u64, buffer: *mut u64, message: *mut Message) -> i32 {
    // SAFETY: the device is open.
    match unsafe { &*device }.state().alloc(bytes) {
        Some(made) => {
            // SAFETY: the header gives where the number goes.
            unsafe { buffer.write(made) };
            DONE
        }
        // SAFETY: the message is as `yirage_backend.h` has it.
        None => unsafe { say(message, OUT_OF_MEMORY, "no memory") },
    }
}

unsafe extern "C" fn free(device: Handle, buffer: u64) {
    // SAFETY: the device is open.
    unsafe { &*device }.state().free(buffer);
}

unsafe extern "C" fn upload(device: Handle, from: *const c_void, to: Slice, message: *mut Message) -> i32 {
    // SAFETY: the header gives as many bytes as the slice has, which lies in a buffer.
    unsafe {
        with(device, message, |_| {
            move_bytes(to, from.cast_mut().cast(), true);
            Ok(())
        })
    }
}

unsafe extern "C" fn download(device: Handle, from: Slice, to: *mut c_void, message: *mut Message) -> i32 {
    // SAFETY: the header gives as many bytes as the slice has, which lies in a buffer.
    unsafe {
        with(device, message, |_| {
            move_bytes(from, to.cast(), false);
            Ok(())
        })
    }
}

unsafe extern "C" fn copy(device: Handle, from: Slice, to: Slice, message: *mut Message) -> i32 {
    // SAFETY: the header gives slices that lie in buffers, for as long as a graph has them.
    unsafe { with(device, message, |state| state.submit(Command::Copy { from, to })) }
}

unsafe extern "C" fn fill(device: Handle, slice: Slice, byte: u8, message: *mut Message) -> i32 {
    // SAFETY: as of `copy`.
    unsafe { with(device, message, |state| state.submit(Command::Fill { slice, byte })) }
}

unsafe extern "C" fn load(
    device: Handle,
    source: *const c_char,
    source_bytes: usize,
    kernels: *const Kernel,
    kernel_count: usize,
    module: *mut u64,
    message: *mut Message,
) -> i32 {
    // SAFETY: the header gives so many bytes and kernels, whose names end with a 0, and where the number goes.
    unsafe {
        let source = String::from_utf8_lossy(std::slice::from_raw_parts(source.cast(), source_bytes));
        let kernels = std::slice::from_raw_parts(kernels, kernel_count).iter().map(|kernel| KernelOfSource {
            name: CStr::from_ptr(kernel.name).to_string_lossy().into_owned(),
            threads: kernel.threads,
            buffers: kernel.buffers,
        });
        with(device, message, |state| state.load(&source, kernels.collect()).map(|made| module.write(made)))
    }
}

unsafe extern "C" fn unload(device: Handle, module: u64) {
    // SAFETY: the device is open.
    unsafe { &*device }.state().unload(module);
}

unsafe extern "C" fn launch(device: Handle, launch: *const Launch, message: *mut Message) -> i32 {
    // SAFETY: the header gives a launch whose slices lie in buffers, for as long as a graph has them.
    unsafe {
        let launch = &*launch;
        let slices = std::slice::from_raw_parts(launch.slices, launch.slice_count).to_vec();
        let kernel = CStr::from_ptr(launch.kernel).to_string_lossy().into_owned();
        with(device, message, |state| {
            let module = state.module(launch.module)?;
            state.submit(Command::Launch { module, kernel, grid: launch.grid, slices })
        })
    }
}

unsafe extern "C" fn signal(device: Handle, value: *mut u64, _: *mut Message) -> i32 {
    // SAFETY: the device is open, and the header gives a number.
    unsafe { value.write((*device).signalled.fetch_add(1, Ordering::AcqRel) + 1) };
    DONE
}

unsafe extern "C" fn reached(device: Handle, value: *mut u64, _: *mut Message) -> i32 {
    // SAFETY: the device is open, and the header gives a number.
    unsafe { value.write((*device).signalled.load(Ordering::Acquire)) };
    DONE
}

unsafe extern "C" fn wait(device: Handle, value: u64, _: u64, message: *mut Message) -> i32 {
    // SAFETY: the device is open, and the message is as `yirage_backend.h` has it.
    unsafe {
        if value <= (*device).signalled.load(Ordering::Acquire) {
            return DONE;
        }
        say(message, NOT_YET, "nobody has signalled that value")
    }
}

unsafe extern "C" fn begin(device: Handle, message: *mut Message) -> i32 {
    // SAFETY: the device is open, and the message is as `yirage_backend.h` has it.
    unsafe { with(device, message, DeviceState::begin) }
}

unsafe extern "C" fn end(device: Handle, graph: *mut u64, message: *mut Message) -> i32 {
    // SAFETY: as of `begin`; the header gives where the number goes.
    unsafe { with(device, message, |state| state.end().map(|made| graph.write(made))) }
}

unsafe extern "C" fn replay(device: Handle, graph: u64, message: *mut Message) -> i32 {
    // SAFETY: as of `begin`; a graph's buffers stay until it is released.
    unsafe { with(device, message, |state| state.replay(graph)) }
}

unsafe extern "C" fn release(device: Handle, graph: u64) {
    // SAFETY: the device is open.
    unsafe { &*device }.state().release(graph);
}

unsafe extern "C" fn timestamp(device: Handle, nanoseconds: *mut u64, _: *mut Message) -> i32 {
    // SAFETY: the device is open, and the header gives a number.
    unsafe { nanoseconds.write((*device).now()) };
    DONE
}

static GRAPHS: Graphs = Graphs { bytes: size_of::<Graphs>() as u32, begin, end, replay, release };
static CLOCK: Clock = Clock { bytes: size_of::<Clock>() as u32, timestamp };
static BACKEND: Backend = Backend {
    version: VERSION,
    bytes: size_of::<Backend>() as u32,
    name: c"software".as_ptr(),
    title: c"a device in software, an example in Rust".as_ptr(),
    count,
    describe,
    open,
    close,
    alloc,
    free,
    upload,
    download,
    copy,
    fill,
    load,
    unload,
    launch,
    signal,
    reached,
    wait,
    graphs: &GRAPHS,
    clock: &CLOCK,
};

/// What the library exports.
#[unsafe(no_mangle)]
pub extern "C" fn yirage_backend() -> *const Backend {
    &BACKEND
}
