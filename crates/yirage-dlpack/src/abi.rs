//! The C structures of DLPack 1.1, as `dlpack.h` lays them out.

use std::ffi::{CStr, c_void};

/// Name of a capsule of [`DlpackManaged`], before and after somebody took what is in it.
pub(crate) const PLAIN: &CStr = c"dltensor";
pub(crate) const PLAIN_USED: &CStr = c"used_dltensor";
/// The same of [`DlpackVersioned`].
pub(crate) const VERSIONED: &CStr = c"dltensor_versioned";
pub(crate) const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// The host's memory, and the part of it that CUDA has pinned.
pub(crate) const CPU: i32 = 1;
pub(crate) const CUDA_HOST: i32 = 3;

/// The version that is written. A reader takes any minor version of its major one.
pub(crate) const VERSION: DlpackVersion = DlpackVersion { major: 1, minor: 1 };
/// The flag of elements that must not be written.
pub(crate) const READ_ONLY: u64 = 1;
/// The flag of elements that were copied for this export.
pub(crate) const IS_COPIED: u64 = 1 << 1;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DlpackDevice {
    pub(crate) kind: i32,
    pub(crate) id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct DlpackDType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

#[repr(C)]
pub(crate) struct DlpackTensor {
    pub(crate) data: *mut c_void,
    pub(crate) device: DlpackDevice,
    pub(crate) rank: i32,
    pub(crate) dtype: DlpackDType,
    pub(crate) shape: *mut i64,
    /// In elements; null for dense row-major ones.
    pub(crate) strides: *mut i64,
    pub(crate) byte_offset: u64,
}

#[repr(C)]
pub(crate) struct DlpackManaged {
    pub(crate) view: DlpackTensor,
    pub(crate) context: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut DlpackManaged)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DlpackVersion {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

#[repr(C)]
pub(crate) struct DlpackVersioned {
    pub(crate) version: DlpackVersion,
    pub(crate) context: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut DlpackVersioned)>,
    pub(crate) flags: u64,
    pub(crate) view: DlpackTensor,
}
