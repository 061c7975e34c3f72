//! A maker's library, loaded: the only calls into code that is not Rust.
//!
//! The makers document their functions in headers; each method here is one shape of them. Numbers of devices are passed in
//! 64 bits: makers differ in their width, and a function that takes 32 reads the lower half of the same register. Knows
//! nothing of which functions a family has.

use crate::error::ProbeError;
use std::error::Error as _;
use std::ffi::{CStr, c_char, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

/// Bytes of the longest name that is asked for.
const NAME: usize = 256;
/// Bytes that a record of a device may take: several times what any version's record has.
const RECORD: usize = 8192;

/// A loaded library. It stays loaded: runtimes leave threads behind, whose code must not go away.
pub struct DriverLibrary {
    path: PathBuf,
    handle: ManuallyDrop<libloading::Library>,
}

impl DriverLibrary {
    /// Loads the library at a path that somebody has named, once its file is one that this processor can load.
    ///
    /// # Errors
    /// Why it is none, or what the system said.
    pub fn at(path: &Path) -> Result<DriverLibrary, ProbeError> {
        crate::elf::check(path)?;
        DriverLibrary::load(path)
    }

    /// Loads the library at `path`, whose file was checked by [`crate::elf::check`] where there is one. Its own code runs
    /// then, as it does whenever a program is started with it.
    ///
    /// # Errors
    /// [`ProbeError::Refused`].
    pub(crate) fn load(path: &Path) -> Result<DriverLibrary, ProbeError> {
        // What the loader says stands behind the error that it is.
        let said = |e: libloading::Error| e.source().map_or_else(|| e.to_string(), ToString::to_string);
        let refused = |e| ProbeError::Refused { path: path.to_path_buf(), why: said(e) };
        // SAFETY: `elf::check` has shown that what is mapped lies in the file. That the library's own start is sound is
        // the maker's promise.
        let handle = unsafe { open(path) }.map_err(refused)?;
        Ok(DriverLibrary { path: path.to_path_buf(), handle: ManuallyDrop::new(handle) })
    }

    /// Where it lies.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The function called `symbol`.
    ///
    /// # Safety
    /// `F` is the type of a C function, and `symbol` names one of that type.
    ///
    /// # Errors
    /// [`ProbeError::MissingSymbol`].
    pub unsafe fn function<F: Copy>(&self, symbol: &'static str) -> Result<F, ProbeError> {
        // SAFETY: what `open` is promised: a library that does no harm when it is loaded. A null address is the `None` of a pointer to a function.
        let found = unsafe { self.handle.get::<Option<F>>(symbol) };
        let function = found.ok().and_then(|symbol| *symbol);
        function.ok_or_else(|| ProbeError::MissingSymbol { path: self.path(), symbol })
    }

    /// An error where `code` is not 0.
    ///
    /// # Errors
    /// [`ProbeError::Code`].
    pub(crate) fn checked(&self, call: &'static str, code: i32) -> Result<(), ProbeError> {
        if code == 0 { Ok(()) } else { Err(ProbeError::Code { path: self.path(), call, code }) }
    }

    /// `code call(int *value)`.
    pub(crate) fn number(&self, call: &'static str) -> Result<i32, ProbeError> {
        let mut value = 0;
        // SAFETY: the families name functions of this type here; the value is ours.
        let code = unsafe { self.function::<unsafe extern "C" fn(*mut i32) -> i32>(call)?(&mut value) };
        self.checked(call, code).map(|()| value)
    }

    /// `code call(int *a, int *b, int *c)`.
    pub(crate) fn three_numbers(&self, call: &'static str) -> Result<[i32; 3], ProbeError> {
        type Call = unsafe extern "C" fn(*mut i32, *mut i32, *mut i32) -> i32;
        let [mut a, mut b, mut c] = [0; 3];
        // SAFETY: the families name functions of this type here; the values are ours.
        let code = unsafe { self.function::<Call>(call)?(&mut a, &mut b, &mut c) };
        self.checked(call, code).map(|()| [a, b, c])
    }

    /// `code call(device *value, int ordinal)`.
    pub(crate) fn device(&self, call: &'static str, ordinal: u32) -> Result<i64, ProbeError> {
        let mut device = 0i64;
        // SAFETY: the families name functions of this type here; no maker's device is wider than the value.
        let code = unsafe { self.function::<unsafe extern "C" fn(*mut i64, u32) -> i32>(call)?(&mut device, ordinal) };
        self.checked(call, code).map(|()| device)
    }

    /// `code call(char *name, int length, device)`.
    pub(crate) fn name(&self, call: &'static str, device: i64) -> Result<String, ProbeError> {
        type Call = unsafe extern "C" fn(*mut c_char, i32, i64) -> i32;
        let mut name = [0u8; NAME];
        // SAFETY: the families name functions of this type here; the buffer has as many bytes as the call is told, and
        // one more that stays 0.
        let code = unsafe { self.function::<Call>(call)?(name.as_mut_ptr().cast(), NAME as i32 - 1, device) };
        self.checked(call, code).map(|()| text(&name))
    }

    /// `code call(size_t *bytes, device)`.
    pub(crate) fn bytes(&self, call: &'static str, device: i64) -> Result<u64, ProbeError> {
        let mut bytes = 0u64;
        // SAFETY: the families name functions of this type here; the value is ours.
        let code = unsafe { self.function::<unsafe extern "C" fn(*mut u64, i64) -> i32>(call)?(&mut bytes, device) };
        self.checked(call, code).map(|()| bytes)
    }

    /// `code call(int *value, int which, device)`.
    pub(crate) fn attribute(&self, call: &'static str, which: i32, device: i64) -> Result<i32, ProbeError> {
        type Call = unsafe extern "C" fn(*mut i32, i32, i64) -> i32;
        let mut value = 0;
        // SAFETY: the families name functions of this type here; the value is ours.
        let code = unsafe { self.function::<Call>(call)?(&mut value, which, device) };
        self.checked(call, code).map(|()| value)
    }

    /// The text at byte `at` of the record that `code call(record *, device)` fills.
    pub(crate) fn text_of_record(&self, call: &'static str, at: usize, device: i64) -> Result<String, ProbeError> {
        // Words, so that the record is aligned.
        let mut record = [0u64; RECORD / 8];
        // SAFETY: the families name functions of this type here; no version's record is as large as the buffer.
        let code = unsafe {
            self.function::<unsafe extern "C" fn(*mut c_void, i64) -> i32>(call)?(record.as_mut_ptr().cast(), device)
        };
        let bytes: Vec<u8> = record.iter().flat_map(|word| word.to_ne_bytes()).skip(at).take(NAME).collect();
        self.checked(call, code).map(|()| text(&bytes))
    }

    /// `code call(int number)`.
    pub(crate) fn of_number(&self, call: &'static str, number: u32) -> Result<(), ProbeError> {
        // SAFETY: the families name functions of this type here.
        let code = unsafe { self.function::<unsafe extern "C" fn(u32) -> i32>(call)?(number) };
        self.checked(call, code)
    }

    /// `code call(int which, size_t *a, size_t *b)`.
    pub(crate) fn two_sizes(&self, call: &'static str, which: i32) -> Result<[u64; 2], ProbeError> {
        type Call = unsafe extern "C" fn(i32, *mut u64, *mut u64) -> i32;
        let [mut a, mut b] = [0; 2];
        // SAFETY: the families name functions of this type here; the values are ours.
        let code = unsafe { self.function::<Call>(call)?(which, &mut a, &mut b) };
        self.checked(call, code).map(|()| [a, b])
    }

    /// The text that `const char *call(void)` gives.
    pub(crate) fn own_text(&self, call: &'static str) -> Result<String, ProbeError> {
        // SAFETY: the families name functions of this type here.
        let first = unsafe { self.function::<unsafe extern "C" fn() -> *const c_char>(call)?() };
        if first.is_null() {
            return Err(ProbeError::Nonsense { path: self.path(), call, answer: "no text".into() });
        }
        // SAFETY: it is no null pointer, and the library keeps the text that it ends with a 0.
        Ok(unsafe { CStr::from_ptr(first) }.to_string_lossy().into_owned())
    }
}

/// The text before the first 0.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Loads with every function resolved at once, so that one that is missing is an error here and no abort later, and
/// without lending the library's names to others: makers use each other's.
///
/// # Safety
/// As [`libloading::DriverLibrary::new`].
#[cfg(unix)]
unsafe fn open(path: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: what `open` is promised: a library that does no harm when it is loaded.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// As on Unix, as far as the system knows these differences.
///
/// # Safety
/// As [`libloading::DriverLibrary::new`].
#[cfg(not(unix))]
unsafe fn open(path: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: what `open` is promised: a library that does no harm when it is loaded.
    unsafe { libloading::Library::new(path) }
}
