//! The two families of MPI libraries, whose programs call the same functions with other handles and constants.
//!
//! Open MPI's handles are addresses of objects that the library exports; those of MPICH and its relatives are numbers.

use libloading::Library;
use std::ffi::{c_char, c_int, c_void};
use std::fmt;

/// Which family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MpiAbi {
    /// Open MPI and what is built from it.
    OpenMpi,
    /// MPICH, and what keeps to its binary interface: MVAPICH, Intel MPI, Cray MPICH.
    Mpich,
}

impl MpiAbi {
    /// The names of its libraries, the newest first.
    pub(super) fn libraries(self) -> &'static [&'static str] {
        match self {
            MpiAbi::OpenMpi => &["libmpi.so.40", "libmpi.so.20", "libmpi.so"],
            MpiAbi::Mpich => &["libmpich.so.12", "libmpi.so.12", "libmpich.so"],
        }
    }
}

impl fmt::Display for MpiAbi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MpiAbi::OpenMpi => "Open MPI",
            MpiAbi::Mpich => "MPICH",
        })
    }
}

/// Handles and constants of a family.
pub(super) trait Handles: Copy + Send + 'static {
    /// All processes, bytes, and that errors are returned; none where the library does not export them.
    fn known(library: &Library) -> Option<KnownHandles<Self>>;
    /// What is written over.
    const NONE: Self;
    /// What stands for a status that nobody wants.
    const IGNORED_STATUS: *mut c_void;
}

#[derive(Clone, Copy)]
pub(super) struct KnownHandles<H> {
    pub(super) world: H,
    pub(super) bytes: H,
    pub(super) errors_return: H,
}

/// Open MPI's: an address.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct HandleAddress(*mut c_void);

// SAFETY: the address of an object of the library, which this program never reads.
unsafe impl Send for HandleAddress {}

impl Handles for HandleAddress {
    fn known(library: &Library) -> Option<KnownHandles<HandleAddress>> {
        // SAFETY: of these symbols the addresses alone are taken.
        let of = |name: &[u8]| unsafe { library.get::<*mut c_void>(name).ok()?.try_as_raw_ptr().map(HandleAddress) };
        Some(KnownHandles {
            world: of(b"ompi_mpi_comm_world")?,
            bytes: of(b"ompi_mpi_byte")?,
            errors_return: of(b"ompi_mpi_errors_return")?,
        })
    }

    const NONE: HandleAddress = HandleAddress(std::ptr::null_mut());
    const IGNORED_STATUS: *mut c_void = std::ptr::null_mut();
}

/// MPICH's: a number.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct HandleNumber(c_int);

impl Handles for HandleNumber {
    fn known(_: &Library) -> Option<KnownHandles<HandleNumber>> {
        let number = |bits: u32| HandleNumber(bits as c_int);
        Some(KnownHandles {
            world: number(0x4400_0000),
            bytes: number(0x4c00_010d),
            errors_return: number(0x5400_0001),
        })
    }

    const NONE: HandleNumber = HandleNumber(0);
    const IGNORED_STATUS: *mut c_void = std::ptr::without_provenance_mut(1);
}

/// The longest text that a library gives, with room for later versions.
pub(super) const TEXT_BYTES: usize = 8192;

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*);)*) => {
        /// The functions of a library that are called, by their C signatures.
        pub(super) struct Functions<H> {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl<H: Handles> Functions<H> {
            /// All of them, or the name of the first that the library lacks.
            pub(super) fn of(library: &Library) -> Result<Functions<H>, &'static str> {
                Ok(Functions {
                    // SAFETY: the symbols are functions that MPI's standard gives these signatures, with handles of this family.
                    $($field: *unsafe { library.get(concat!($symbol, "\0").as_bytes()) }.map_err(|_| $symbol)?,)*
                })
            }
        }
    };
}

functions! {
    init_thread = "MPI_Init_thread": fn(*mut c_int, *mut c_void, c_int, *mut c_int);
    initialized = "MPI_Initialized": fn(*mut c_int);
    finalize = "MPI_Finalize": fn();
    set_errhandler = "MPI_Comm_set_errhandler": fn(H, H);
    rank = "MPI_Comm_rank": fn(H, *mut c_int);
    size = "MPI_Comm_size": fn(H, *mut c_int);
    dup = "MPI_Comm_dup": fn(H, *mut H);
    isend = "MPI_Isend": fn(*const c_void, c_int, H, c_int, c_int, H, *mut H);
    irecv = "MPI_Irecv": fn(*mut c_void, c_int, H, c_int, c_int, H, *mut H);
    test = "MPI_Test": fn(*mut H, *mut c_int, *mut c_void);
    error_string = "MPI_Error_string": fn(c_int, *mut c_char, *mut c_int);
}

/// What a library says it is. It may be asked before anything else.
pub(super) fn version(library: &Library) -> Option<String> {
    type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    // SAFETY: the signature is that of MPI's standard; the text below has room for the longest of any version.
    unsafe {
        let version = library.get::<Version>(b"MPI_Get_library_version\0").ok()?;
        text(|buffer, len| version(buffer, len))
    }
}

/// The text that a function of a library writes.
pub(super) fn text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> Option<String> {
    let (mut buffer, mut len) = (vec![0u8; TEXT_BYTES], 0);
    if write(buffer.as_mut_ptr().cast(), &raw mut len) != 0 {
        return None;
    }
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(TEXT_BYTES);
    Some(String::from_utf8_lossy(&buffer[..end]).trim().to_string())
}
