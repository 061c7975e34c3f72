//! The interface as `include/yirage_backend.h` has it, field by field.

use std::ffi::{c_char, c_void};

/// `YIRAGE_BACKEND_VERSION`.
pub(crate) const VERSION: u32 = 1;
/// The function that a library exports.
pub(crate) const ENTRY: &str = "yirage_backend";

/// `struct yirage_message`.
#[repr(C)]
pub(crate) struct RawMessage {
    pub(crate) text: *mut c_char,
    pub(crate) bytes: usize,
}

/// `struct yirage_device_info`.
#[repr(C)]
#[derive(Clone)]
pub(crate) struct RawDeviceInfo {
    pub(crate) name: [u8; 128],
    pub(crate) arch: [u8; 64],
    pub(crate) driver_version: [u8; 64],
    pub(crate) dialect: [u8; 16],
    pub(crate) total_memory: u64,
    pub(crate) free_memory: u64,
    pub(crate) cores: u32,
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) software: u32,
    pub(crate) in_flight: u32,
}

/// `struct yirage_slice`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawSlice {
    pub(crate) buffer: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// `struct yirage_kernel`.
#[repr(C)]
pub(crate) struct RawKernel {
    pub(crate) name: *const c_char,
    pub(crate) threads: u32,
    pub(crate) buffers: u32,
}

/// `struct yirage_launch`.
#[repr(C)]
pub(crate) struct RawLaunch {
    pub(crate) module: u64,
    pub(crate) kernel: *const c_char,
    pub(crate) grid: [u32; 3],
    pub(crate) threads: u32,
    pub(crate) slices: *const RawSlice,
    pub(crate) slice_count: usize,
}

/// `struct yirage_device`, of which nothing is known.
#[repr(C)]
pub(crate) struct RawDevice {
    _own: [u8; 0],
}

/// `struct yirage_graphs`, where any function may be missing.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawGraphs {
    pub(crate) bytes: u32,
    pub(crate) begin: Option<unsafe extern "C" fn(*mut RawDevice, *mut RawMessage) -> i32>,
    pub(crate) end: Option<unsafe extern "C" fn(*mut RawDevice, *mut u64, *mut RawMessage) -> i32>,
    pub(crate) replay: Option<unsafe extern "C" fn(*mut RawDevice, u64, *mut RawMessage) -> i32>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut RawDevice, u64)>,
}

/// `struct yirage_clock`, where its function may be missing.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawClock {
    pub(crate) bytes: u32,
    pub(crate) timestamp: Option<TimestampFunction>,
}

/// Its functions, all of which are there.
#[derive(Clone, Copy)]
pub(crate) struct GraphFunctions {
    pub(crate) begin: unsafe extern "C" fn(*mut RawDevice, *mut RawMessage) -> i32,
    pub(crate) end: unsafe extern "C" fn(*mut RawDevice, *mut u64, *mut RawMessage) -> i32,
    pub(crate) replay: unsafe extern "C" fn(*mut RawDevice, u64, *mut RawMessage) -> i32,
    pub(crate) release: unsafe extern "C" fn(*mut RawDevice, u64),
}

impl GraphFunctions {
    /// Of a table's; the name of the first that is missing.
    pub(crate) fn of(raw: &RawGraphs) -> Result<GraphFunctions, &'static str> {
        Ok(GraphFunctions {
            begin: raw.begin.ok_or("graphs.begin")?,
            end: raw.end.ok_or("graphs.end")?,
            replay: raw.replay.ok_or("graphs.replay")?,
            release: raw.release.ok_or("graphs.release")?,
        })
    }
}

/// Notes the device's time.
pub(crate) type TimestampFunction = unsafe extern "C" fn(*mut RawDevice, *mut u64, *mut RawMessage) -> i32;

/// A function that says in its last argument what is wrong.
macro_rules! calls {
    ($($name:ident: fn($($argument:ty),*);)*) => {
        /// `struct yirage_backend`, where any function may be missing.
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub(crate) struct RawBackend {
            pub(crate) version: u32,
            pub(crate) bytes: u32,
            pub(crate) name: *const c_char,
            pub(crate) title: *const c_char,
            $(pub(crate) $name: Option<raw_function!($name($($argument),*))>,)*
            pub(crate) graphs: *const RawGraphs,
            pub(crate) clock: *const RawClock,
        }

        /// Its functions, all of which are there.
        #[derive(Clone, Copy)]
        pub(crate) struct BackendFunctions {
            $(pub(crate) $name: raw_function!($name($($argument),*)),)*
        }

        impl BackendFunctions {
            /// Of a backend's; the name of the first that is missing.
            pub(crate) fn of(raw: &RawBackend) -> Result<BackendFunctions, &'static str> {
                Ok(BackendFunctions { $($name: raw.$name.ok_or(stringify!($name))?,)* })
            }
        }
    };
}

/// Three functions return nothing and have nothing to say.
macro_rules! raw_function {
    (close($($argument:ty),*)) => { unsafe extern "C" fn($($argument),*) };
    (free($($argument:ty),*)) => { unsafe extern "C" fn($($argument),*) };
    (unload($($argument:ty),*)) => { unsafe extern "C" fn($($argument),*) };
    ($name:ident($($argument:ty),*)) => { unsafe extern "C" fn($($argument,)* *mut RawMessage) -> i32 };
}

calls! {
    count: fn(*mut u32);
    describe: fn(u32, *mut RawDeviceInfo);
    open: fn(u32, *mut *mut RawDevice);
    close: fn(*mut RawDevice);
    alloc: fn(*mut RawDevice, u64, *mut u64);
    free: fn(*mut RawDevice, u64);
    upload: fn(*mut RawDevice, *const c_void, RawSlice);
    download: fn(*mut RawDevice, RawSlice, *mut c_void);
    copy: fn(*mut RawDevice, RawSlice, RawSlice);
    fill: fn(*mut RawDevice, RawSlice, u8);
    load: fn(*mut RawDevice, *const c_char, usize, *const RawKernel, usize, *mut u64);
    unload: fn(*mut RawDevice, u64);
    launch: fn(*mut RawDevice, *const RawLaunch);
    signal: fn(*mut RawDevice, *mut u64);
    reached: fn(*mut RawDevice, *mut u64);
    wait: fn(*mut RawDevice, u64, u64);
}
