//! The functions of the makers' libraries: what they do and their types, and how the names of the makers go.
//!
//! Types are those of `nccl.h` (2.18), `cncl.h` (1.8) and `hccl.h`/`hccl_comm.h` (CANN 8). Where two makers take one argument as
//! an `int` and as an `enum`, or as a `size_t` and as a `uint64_t`, both are read from the same register.

use std::ffi::{c_char, c_void};
use yirage_probe::{DriverLibrary, ProbeError};

/// What the library gives out and takes back, and a stream of the driver's.
pub(crate) type CollectiveHandle = *mut c_void;

/// `ncclUniqueId`, which is passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct UniqueId(pub(crate) [u8; 128]);

/// What gets the words for an answer.
type SaidCall = unsafe extern "C" fn(i32) -> *const c_char;
/// A call about a communicator alone.
type OfCommunicator = unsafe extern "C" fn(CollectiveHandle) -> i32;
/// From, to, elements, type, operation, communicator, stream.
type ReduceCall =
    unsafe extern "C" fn(*const c_void, *mut c_void, usize, i32, i32, CollectiveHandle, CollectiveHandle) -> i32;
/// From, to, elements, type, communicator, stream.
type GatherCall =
    unsafe extern "C" fn(*const c_void, *mut c_void, usize, i32, CollectiveHandle, CollectiveHandle) -> i32;
/// Where, elements, type, the other rank, communicator, stream.
type MessageCall = unsafe extern "C" fn(*mut c_void, usize, i32, i32, CollectiveHandle, CollectiveHandle) -> i32;

/// How ranks become a group, each in the form of its maker.
pub(crate) enum IdentityCalls {
    /// NCCL's: an identity that one rank has made, by value.
    Unique {
        new: unsafe extern "C" fn(*mut UniqueId) -> i32,
        join: unsafe extern "C" fn(*mut CollectiveHandle, i32, UniqueId, i32) -> i32,
    },
    /// CNCL's: for many devices of a process at once, each with its number.
    Clique {
        new: unsafe extern "C" fn(*mut u8) -> i32,
        join: unsafe extern "C" fn(*mut CollectiveHandle, i32, *const i32, *const i32, i32, *const u8) -> i32,
    },
    /// HCCL's: where the first rank is, by its address.
    RootInfo {
        new: unsafe extern "C" fn(*mut u8) -> i32,
        join: unsafe extern "C" fn(u32, *const u8, u32, *mut CollectiveHandle) -> i32,
    },
}

/// How a library is asked what has failed since.
pub(crate) enum FailedCall {
    /// The answer is written.
    Written(unsafe extern "C" fn(CollectiveHandle, *mut i32) -> i32),
    /// It is returned.
    Returned(OfCommunicator),
}

/// How one rank's elements come to all.
pub(crate) enum BroadcastCall {
    /// From, to, elements, type, root, communicator, stream.
    FromTo(
        unsafe extern "C" fn(*const c_void, *mut c_void, usize, i32, i32, CollectiveHandle, CollectiveHandle) -> i32,
    ),
    /// Where they lie on every rank.
    InPlace(MessageCall),
}

/// The beginning and the end of calls that are one.
pub(crate) type GroupCalls = [unsafe extern "C" fn() -> i32; 2];

/// The names of functions that differ in their form.
pub(crate) enum IdentityNames {
    Unique { new: &'static str, join: &'static str },
    Clique { new: &'static str, join: &'static str },
    RootInfo { new: &'static str, join: &'static str },
}

/// What a maker calls its functions.
pub(crate) struct CollectiveNames {
    pub(crate) identity: IdentityNames,
    pub(crate) version: Option<&'static str>,
    pub(crate) said: &'static str,
    pub(crate) failed: &'static str,
    pub(crate) leave: &'static str,
    pub(crate) abort: Option<&'static str>,
    pub(crate) group: Option<[&'static str; 2]>,
    pub(crate) all_reduce: &'static str,
    pub(crate) all_gather: &'static str,
    pub(crate) reduce_scatter: &'static str,
    pub(crate) broadcast: &'static str,
    pub(crate) send: &'static str,
    pub(crate) recv: &'static str,
}

/// The names of a library that differ from NCCL's in their first letters.
macro_rules! nccl_names {
    ($prefix:literal) => {
        CollectiveNames {
            identity: IdentityNames::Unique {
                new: concat!($prefix, "GetUniqueId"),
                join: concat!($prefix, "CommInitRank"),
            },
            version: Some(concat!($prefix, "GetVersion")),
            said: concat!($prefix, "GetErrorString"),
            failed: concat!($prefix, "CommGetAsyncError"),
            leave: concat!($prefix, "CommDestroy"),
            abort: Some(concat!($prefix, "CommAbort")),
            group: Some([concat!($prefix, "GroupStart"), concat!($prefix, "GroupEnd")]),
            all_reduce: concat!($prefix, "AllReduce"),
            all_gather: concat!($prefix, "AllGather"),
            reduce_scatter: concat!($prefix, "ReduceScatter"),
            broadcast: concat!($prefix, "Broadcast"),
            send: concat!($prefix, "Send"),
            recv: concat!($prefix, "Recv"),
        }
    };
}
pub(crate) use nccl_names;

/// The functions of a library.
pub(crate) struct CollectiveFunctions {
    pub(crate) identity: IdentityCalls,
    pub(crate) version: Option<unsafe extern "C" fn(*mut i32) -> i32>,
    pub(crate) said: SaidCall,
    pub(crate) failed: FailedCall,
    pub(crate) leave: OfCommunicator,
    pub(crate) abort: Option<OfCommunicator>,
    pub(crate) group: Option<GroupCalls>,
    pub(crate) all_reduce: ReduceCall,
    pub(crate) all_gather: GatherCall,
    pub(crate) reduce_scatter: ReduceCall,
    pub(crate) broadcast: BroadcastCall,
    pub(crate) send: MessageCall,
    pub(crate) recv: MessageCall,
}

impl CollectiveFunctions {
    /// Finds all of them.
    ///
    /// # Errors
    /// The first that is missing.
    pub(crate) fn of(library: &DriverLibrary, names: &CollectiveNames) -> Result<CollectiveFunctions, ProbeError> {
        // SAFETY: the types are those of the functions of these names in the makers' headers; a library of another maker with
        // the same file name lacks those of `identity`.
        unsafe {
            let identity = match names.identity {
                IdentityNames::Unique { new, join } => {
                    IdentityCalls::Unique { new: library.function(new)?, join: library.function(join)? }
                }
                IdentityNames::Clique { new, join } => {
                    IdentityCalls::Clique { new: library.function(new)?, join: library.function(join)? }
                }
                IdentityNames::RootInfo { new, join } => {
                    IdentityCalls::RootInfo { new: library.function(new)?, join: library.function(join)? }
                }
            };
            let failed = match &identity {
                IdentityCalls::Clique { .. } => FailedCall::Returned(library.function(names.failed)?),
                _ => FailedCall::Written(library.function(names.failed)?),
            };
            let broadcast = match &identity {
                IdentityCalls::RootInfo { .. } => BroadcastCall::InPlace(library.function(names.broadcast)?),
                _ => BroadcastCall::FromTo(library.function(names.broadcast)?),
            };
            let group = match names.group {
                Some([begin, end]) => Some([library.function(begin)?, library.function(end)?]),
                None => None,
            };
            Ok(CollectiveFunctions {
                identity,
                version: names.version.map(|name| library.function(name)).transpose()?,
                said: library.function(names.said)?,
                failed,
                leave: library.function(names.leave)?,
                abort: names.abort.map(|name| library.function(name)).transpose()?,
                group,
                all_reduce: library.function(names.all_reduce)?,
                all_gather: library.function(names.all_gather)?,
                reduce_scatter: library.function(names.reduce_scatter)?,
                broadcast,
                send: library.function(names.send)?,
                recv: library.function(names.recv)?,
            })
        }
    }
}
