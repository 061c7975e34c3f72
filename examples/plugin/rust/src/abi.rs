//! `yirage_backend.h`, field by field.

use std::ffi::{c_char, c_void};

pub const VERSION: u32 = 1;

pub const DONE: i32 = 0;
pub const FAILED: i32 = 1;
pub const OUT_OF_MEMORY: i32 = 2;
pub const NOT_YET: i32 = 5;

#[repr(C)]
pub struct Message {
    pub text: *mut c_char,
    pub bytes: usize,
}

#[repr(C)]
pub struct DeviceInfo {
    pub name: [u8; 128],
    pub arch: [u8; 64],
    pub driver_version: [u8; 64],
    pub dialect: [u8; 16],
    pub total_memory: u64,
    pub free_memory: u64,
    pub cores: u32,
    pub threads: u32,
    pub shared_bytes: u64,
    pub grid: [u32; 3],
    pub software: u32,
    pub in_flight: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    pub buffer: u64,
    pub offset: u64,
    pub bytes: u64,
}

#[repr(C)]
pub struct Kernel {
    pub name: *const c_char,
    pub threads: u32,
    pub buffers: u32,
}

#[repr(C)]
pub struct Launch {
    pub module: u64,
    pub kernel: *const c_char,
    pub grid: [u32; 3],
    pub threads: u32,
    pub slices: *const Slice,
    pub slice_count: usize,
}

/// What `open` gives out: the library's own.
pub type Handle = *mut crate::device::SoftwareDevice;

#[repr(C)]
pub struct Graphs {
    pub bytes: u32,
    pub begin: unsafe extern "C" fn(Handle, *mut Message) -> i32,
    pub end: unsafe extern "C" fn(Handle, *mut u64, *mut Message) -> i32,
    pub replay: unsafe extern "C" fn(Handle, u64, *mut Message) -> i32,
    pub release: unsafe extern "C" fn(Handle, u64),
}

#[repr(C)]
pub struct Clock {
    pub bytes: u32,
    pub timestamp: unsafe extern "C" fn(Handle, *mut u64, *mut Message) -> i32,
}

#[repr(C)]
pub struct Backend {
    pub version: u32,
    pub bytes: u32,
    pub name: *const c_char,
    pub title: *const c_char,
    pub count: unsafe extern "C" fn(*mut u32, *mut Message) -> i32,
    pub describe: unsafe extern "C" fn(u32, *mut DeviceInfo, *mut Message) -> i32,
    pub open: unsafe extern "C" fn(u32, *mut Handle, *mut Message) -> i32,
    pub close: unsafe extern "C" fn(Handle),
    pub alloc: unsafe extern "C" fn(Handle, u64, *mut u64, *mut Message) -> i32,
    pub free: unsafe extern "C" fn(Handle, u64),
    pub upload: unsafe extern "C" fn(Handle, *const c_void, Slice, *mut Message) -> i32,
    pub download: unsafe extern "C" fn(Handle, Slice, *mut c_void, *mut Message) -> i32,
    pub copy: unsafe extern "C" fn(Handle, Slice, Slice, *mut Message) -> i32,
    pub fill: unsafe extern "C" fn(Handle, Slice, u8, *mut Message) -> i32,
    pub load: unsafe extern "C" fn(Handle, *const c_char, usize, *const Kernel, usize, *mut u64, *mut Message) -> i32,
    pub unload: unsafe extern "C" fn(Handle, u64),
    pub launch: unsafe extern "C" fn(Handle, *const Launch, *mut Message) -> i32,
    pub signal: unsafe extern "C" fn(Handle, *mut u64, *mut Message) -> i32,
    pub reached: unsafe extern "C" fn(Handle, *mut u64, *mut Message) -> i32,
    pub wait: unsafe extern "C" fn(Handle, u64, u64, *mut Message) -> i32,
    pub graphs: *const Graphs,
    pub clock: *const Clock,
}

// SAFETY: the tables are never written.
unsafe impl Sync for Backend {}
