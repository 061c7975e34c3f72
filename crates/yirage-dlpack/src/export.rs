//! From memory of ours to a capsule that others read where it lies.

use crate::abi::{self, DlpackDevice, DlpackManaged, DlpackTensor, DlpackVersioned};
use crate::memory::Owned;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::Arc;

/// Everything that a view points to, kept until its reader deletes it.
struct ExportOwner {
    _memory: Arc<Owned>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// What is exported: dense row-major elements.
pub(crate) struct Export {
    pub(crate) memory: Arc<Owned>,
    pub(crate) shape: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) dtype: abi::DlpackDType,
    pub(crate) copied: bool,
}

impl Export {
    fn view(self) -> (DlpackTensor, Box<ExportOwner>) {
        let data = self.memory.address().cast();
        let mut kept = Box::new(ExportOwner { _memory: self.memory, shape: self.shape, strides: self.strides });
        let view = DlpackTensor {
            data,
            device: DlpackDevice { kind: abi::CPU, id: 0 },
            rank: kept.shape.len() as i32,
            dtype: self.dtype,
            shape: kept.shape.as_mut_ptr(),
            strides: kept.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        (view, kept)
    }

    /// A capsule as readers of before DLPack 1 take it.
    pub(crate) fn plain(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let (view, kept) = self.view();
        let managed = DlpackManaged { view, context: Box::into_raw(kept).cast(), deleter: Some(delete_plain) };
        // SAFETY: the pointer is of a box, and the destructor is the one of this name.
        unsafe { capsule(py, Box::into_raw(Box::new(managed)).cast(), abi::PLAIN, drop_plain) }
    }

    /// A capsule of DLPack 1.
    pub(crate) fn versioned(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let flags = if self.copied { abi::IS_COPIED } else { 0 };
        let (view, kept) = self.view();
        let context = Box::into_raw(kept).cast();
        let managed = DlpackVersioned { version: abi::VERSION, context, deleter: Some(delete_versioned), flags, view };
        // SAFETY: the pointer is of a box, and the destructor is the one of this name.
        unsafe { capsule(py, Box::into_raw(Box::new(managed)).cast(), abi::VERSIONED, drop_versioned) }
    }
}

/// # Safety
/// `managed` is what `destructor` expects in a capsule of this name, and nobody else's.
unsafe fn capsule<'py>(
    py: Python<'py>,
    managed: *mut std::ffi::c_void,
    name: &'static CStr,
    destructor: ffi::PyCapsule_Destructor,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the pointer is not null and the name lives as long as the program; the result is a new reference or null
    // with an exception.
    unsafe {
        let made = ffi::PyCapsule_New(managed, name.as_ptr(), Some(destructor));
        Bound::from_owned_ptr_or_err(py, made)
    }
}

unsafe extern "C" fn delete_plain(managed: *mut DlpackManaged) {
    // SAFETY: DLPack has it called once, with what `Export::plain` made.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<ExportOwner>()));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut DlpackVersioned) {
    // SAFETY: DLPack has it called once, with what `Export::versioned` made.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<ExportOwner>()));
    }
}

unsafe extern "C" fn drop_plain(capsule: *mut ffi::PyObject) {
    if let Some(managed) = untaken(capsule, abi::PLAIN) {
        // SAFETY: nobody took it, so it is still ours.
        unsafe { delete_plain(managed.cast()) };
    }
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    if let Some(managed) = untaken(capsule, abi::VERSIONED) {
        // SAFETY: nobody took it, so it is still ours.
        unsafe { delete_versioned(managed.cast()) };
    }
}

/// What a capsule holds that still has its first name: whoever takes it renames it.
fn untaken(capsule: *mut ffi::PyObject, name: &CStr) -> Option<*mut std::ffi::c_void> {
    // SAFETY: Python calls destructors with their capsule, attached.
    let held = unsafe {
        match ffi::PyCapsule_IsValid(capsule, name.as_ptr()) {
            0 => null_mut(),
            _ => ffi::PyCapsule_GetPointer(capsule, name.as_ptr()),
        }
    };
    (!held.is_null()).then_some(held)
}
