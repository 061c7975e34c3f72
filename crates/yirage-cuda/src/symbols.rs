//! The functions of drivers and of their compilers: what they do and their types, and how the names of the vendors go.

use std::ffi::{c_char, c_void};
use yirage_probe::{DriverLibrary, ProbeError};

/// What the driver gives out and takes back: contexts, streams, events, modules, functions, graphs.
pub(crate) type RawHandle = *mut c_void;

/// A table of functions by what they do, and a table of their names: each is found by its name when the library is loaded, and one
/// that is missing is an error then, unless it stands behind `optional`.
macro_rules! functions {
    (
        $(#[$doc:meta])* $table:ident, $(#[$names_doc:meta])* $names:ident { $($field:ident: fn($($argument:ty),*);)* }
        $(optional { $($optional:ident: fn($($of_optional:ty),*);)* })?
    ) => {
        $(#[$doc])*
        pub(crate) struct $table {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> i32,)*
            $($(pub(crate) $optional: Option<unsafe extern "C" fn($($of_optional),*) -> i32>,)*)?
        }

        $(#[$names_doc])*
        pub(crate) struct $names {
            $(pub(crate) $field: &'static str,)*
            $($(pub(crate) $optional: &'static str,)*)?
        }

        impl $table {
            /// Finds all of them.
            pub(crate) fn of(library: &DriverLibrary, names: &$names) -> Result<$table, ProbeError> {
                // SAFETY: the types are those of the functions of these names in the vendor's headers; that a library of this
                // vendor has them is what `yirage_probe` looked for.
                unsafe {
                    Ok($table {
                        $($field: library.function(names.$field)?,)*
                        $($($optional: library.function(names.$optional).ok(),)*)?
                    })
                }
            }
        }
    };
}

functions! {
    /// A driver of CUDA's shape: `cuda.h` of CUDA 12.0, whose functions later drivers keep.
    DriverFunctions,
    /// What a vendor calls them.
    DriverNames {
        start: fn(u32);
        device: fn(*mut i32, i32);
        attribute: fn(*mut i32, i32, i32);
        retain_context: fn(*mut RawHandle, i32);
        current_context: fn(*mut RawHandle);
        set_context: fn(RawHandle);
        free_memory: fn(*mut usize, *mut usize);
        alloc: fn(*mut u64, usize);
        free: fn(u64);
        alloc_host: fn(*mut *mut c_void, usize, u32);
        free_host: fn(*mut c_void);
        upload: fn(u64, *const c_void, usize, RawHandle);
        download: fn(*mut c_void, u64, usize, RawHandle);
        copy: fn(u64, u64, usize, RawHandle);
        copy_peer: fn(u64, RawHandle, u64, RawHandle, usize, RawHandle);
        // A byte, which one vendor takes as an `unsigned char` and another as an `int`: both are read from the register's lowest bits.
        fill: fn(u64, u32, usize, RawHandle);
        new_stream: fn(*mut RawHandle, u32);
        drop_stream: fn(RawHandle);
        wait_stream: fn(RawHandle);
        wait_event: fn(RawHandle, RawHandle, u32);
        new_event: fn(*mut RawHandle, u32);
        drop_event: fn(RawHandle);
        record_event: fn(RawHandle, RawHandle);
        query_event: fn(RawHandle);
        elapsed: fn(*mut f32, RawHandle, RawHandle);
        load_module: fn(*mut RawHandle, *const c_void);
        unload_module: fn(RawHandle);
        function: fn(*mut RawHandle, RawHandle, *const c_char);
        launch: fn(RawHandle, u32, u32, u32, u32, u32, u32, u32, RawHandle, *mut *mut c_void, *mut *mut c_void);
        begin_capture: fn(RawHandle, i32);
        end_capture: fn(RawHandle, *mut RawHandle);
        instantiate: fn(*mut RawHandle, RawHandle, u64);
        drop_graph: fn(RawHandle);
        drop_executable: fn(RawHandle);
        launch_graph: fn(RawHandle, RawHandle);
    }
    // Without it a context lasts as long as the process: MetaX's documents have it and its headers do not.
    optional { release_context: fn(i32); }
}

functions! {
    /// How a driver is told of launches that may begin before the one ahead of them has ended, and of those whose blocks are all on the
    /// device at once: `cuda.h` of CUDA 12.0.
    ExtendedFunctions,
    /// What a vendor calls them.
    ExtendedNames {
        launch: fn(*const ExtendedLaunch, RawHandle, *mut *mut c_void, *mut *mut c_void);
        resident_blocks: fn(*mut i32, RawHandle, i32, usize);
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct ExtendedLaunch {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) stream: RawHandle,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) count: u32,
}

/// `CUlaunchAttribute`, whose value is a number.
#[repr(C, align(8))]
pub(crate) struct LaunchAttribute {
    pub(crate) id: i32,
    pub(crate) pad: [u8; 4],
    pub(crate) value: i32,
    /// The other values are longer.
    pub(crate) rest: [u8; 60],
}

/// How a driver gives the words that it has for an answer.
#[derive(Clone, Copy)]
pub(crate) enum ErrorWords {
    /// The address of a text is written, as CUDA's driver does.
    Written {
        /// `CUDA_ERROR_OUT_OF_MEMORY`.
        name: &'static str,
        /// `out of memory`.
        text: &'static str,
    },
    /// It is returned, as CUDA's runtime does.
    Returned {
        /// As above.
        name: &'static str,
        /// As above.
        text: &'static str,
    },
}

functions! {
    /// A compiler of NVRTC's shape: `nvrtc.h` of CUDA 12.0.
    CompilerFunctions,
    /// What a vendor calls them.
    CompilerNames {
        version: fn(*mut i32, *mut i32);
        new_program: fn(
            *mut RawHandle, *const c_char, *const c_char, i32, *const *const c_char, *const *const c_char);
        drop_program: fn(*mut RawHandle);
        compile: fn(RawHandle, i32, *const *const c_char);
        log_bytes: fn(RawHandle, *mut usize);
        log: fn(RawHandle, *mut c_char);
        code_bytes: fn(RawHandle, *mut usize);
        code: fn(RawHandle, *mut c_char);
    }
}

functions! {
    /// What a compiler compiles for, where it tells.
    ArchFunctions,
    /// What a vendor calls them.
    ArchNames {
        count: fn(*mut i32);
        all: fn(*mut i32);
    }
}

/// The names of a driver that differ from CUDA's in their first letters and in that of the capture.
macro_rules! driver_names {
    ($prefix:literal, $begin_capture:literal) => {
        DriverNames {
            start: concat!($prefix, "Init"),
            device: concat!($prefix, "DeviceGet"),
            attribute: concat!($prefix, "DeviceGetAttribute"),
            retain_context: concat!($prefix, "DevicePrimaryCtxRetain"),
            release_context: concat!($prefix, "DevicePrimaryCtxRelease_v2"),
            current_context: concat!($prefix, "CtxGetCurrent"),
            set_context: concat!($prefix, "CtxSetCurrent"),
            free_memory: concat!($prefix, "MemGetInfo_v2"),
            alloc: concat!($prefix, "MemAlloc_v2"),
            free: concat!($prefix, "MemFree_v2"),
            alloc_host: concat!($prefix, "MemHostAlloc"),
            free_host: concat!($prefix, "MemFreeHost"),
            upload: concat!($prefix, "MemcpyHtoDAsync_v2"),
            download: concat!($prefix, "MemcpyDtoHAsync_v2"),
            copy: concat!($prefix, "MemcpyDtoDAsync_v2"),
            copy_peer: concat!($prefix, "MemcpyPeerAsync"),
            fill: concat!($prefix, "MemsetD8Async"),
            new_stream: concat!($prefix, "StreamCreate"),
            drop_stream: concat!($prefix, "StreamDestroy_v2"),
            wait_stream: concat!($prefix, "StreamSynchronize"),
            wait_event: concat!($prefix, "StreamWaitEvent"),
            new_event: concat!($prefix, "EventCreate"),
            drop_event: concat!($prefix, "EventDestroy_v2"),
            record_event: concat!($prefix, "EventRecord"),
            query_event: concat!($prefix, "EventQuery"),
            elapsed: concat!($prefix, "EventElapsedTime"),
            load_module: concat!($prefix, "ModuleLoadData"),
            unload_module: concat!($prefix, "ModuleUnload"),
            function: concat!($prefix, "ModuleGetFunction"),
            launch: concat!($prefix, "LaunchKernel"),
            begin_capture: concat!($prefix, $begin_capture),
            end_capture: concat!($prefix, "StreamEndCapture"),
            instantiate: concat!($prefix, "GraphInstantiateWithFlags"),
            drop_graph: concat!($prefix, "GraphDestroy"),
            drop_executable: concat!($prefix, "GraphExecDestroy"),
            launch_graph: concat!($prefix, "GraphLaunch"),
        }
    };
}
pub(crate) use driver_names;

/// The names of a compiler that differ from NVRTC's in their first letters and in what they call code.
macro_rules! compiler_names {
    ($prefix:literal, $code:literal) => {
        CompilerNames {
            version: concat!($prefix, "Version"),
            new_program: concat!($prefix, "CreateProgram"),
            drop_program: concat!($prefix, "DestroyProgram"),
            compile: concat!($prefix, "CompileProgram"),
            log_bytes: concat!($prefix, "GetProgramLogSize"),
            log: concat!($prefix, "GetProgramLog"),
            code_bytes: concat!($prefix, "Get", $code, "Size"),
            code: concat!($prefix, "Get", $code),
        }
    };
}
pub(crate) use compiler_names;
