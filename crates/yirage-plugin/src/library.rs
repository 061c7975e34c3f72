//! A library, loaded, with its functions checked.

use crate::abi::{
    BackendFunctions, ENTRY, GraphFunctions, RawBackend, RawClock, RawGraphs, TimestampFunction, VERSION,
};
use std::ffi::CStr;
use std::mem::{MaybeUninit, offset_of};
use std::path::{Path, PathBuf};
use thiserror::Error;
use yirage_probe::{DriverLibrary, ProbeError};

/// Bytes of the longest name.
const MOST_NAME: usize = 32;

/// Why a library is no backend.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PluginError {
    /// It cannot be loaded, or exports no `yirage_backend`.
    #[error(transparent)]
    Library(#[from] ProbeError),
    /// It is of another version of the interface.
    #[error("{}: expected version {expected} of the plug-in interface, got {got}; build it with this yirage's yirage_backend.h", path.display())]
    Version {
        /// The library.
        path: PathBuf,
        /// This program's.
        expected: u32,
        /// The library's.
        got: u32,
    },
    /// Its table of functions is not what the header has.
    #[error("{}: {why}; build it with this yirage's yirage_backend.h", path.display())]
    Table {
        /// The library.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It has another name.
    #[error("{}: expected a backend named `{expected}`, got `{got}`; write {got}=PATH in YIRAGE_PLUGINS", path.display())]
    Name {
        /// The library.
        path: PathBuf,
        /// What it was asked for by.
        expected: String,
        /// What it calls itself.
        got: String,
    },
}

/// A library, which stays loaded.
pub(crate) struct PluginLibrary {
    pub(crate) functions: BackendFunctions,
    /// What captures commands and replays them, where the library has it.
    pub(crate) graphs: Option<GraphFunctions>,
    /// What notes the device's time, where the library has it.
    pub(crate) timestamp: Option<TimestampFunction>,
    /// The maker, and what it is made of.
    pub(crate) title: String,
    _library: DriverLibrary,
}

impl PluginLibrary {
    /// Loads the backend of this name.
    pub(crate) fn load(name: &str, path: &Path) -> Result<PluginLibrary, PluginError> {
        let library = DriverLibrary::at(path)?;
        // SAFETY: the header gives the function of this name this type; that the library was built with it is the maker's promise.
        let entry: unsafe extern "C" fn() -> *const RawBackend = unsafe { library.function(ENTRY) }?;
        let table = |why: String| PluginError::Table { path: path.to_path_buf(), why };
        // SAFETY: it takes nothing, and returns a table that stays or null.
        let raw = unsafe { entry() };
        if raw.is_null() || !raw.is_aligned() {
            return Err(table("yirage_backend returned no table".into()));
        }
        // SAFETY: every version of the table begins with these two numbers.
        let [got, bytes] = unsafe { raw.cast::<[u32; 2]>().read() };
        if got != VERSION {
            return Err(PluginError::Version { path: path.to_path_buf(), expected: VERSION, got });
        }
        let (bytes, needed) = (bytes as usize, offset_of!(RawBackend, graphs));
        if bytes < needed {
            return Err(table(format!("expected a table of {needed} bytes at least, got {bytes}")));
        }
        let mut own = MaybeUninit::<RawBackend>::zeroed();
        // SAFETY: it is of this version, and has as many bytes as are copied; what it does not have is null.
        let raw = unsafe {
            let covered = bytes.min(size_of::<RawBackend>());
            std::ptr::copy_nonoverlapping(raw.cast::<u8>(), own.as_mut_ptr().cast::<u8>(), covered);
            own.assume_init()
        };
        let functions = BackendFunctions::of(&raw).map_err(|missing| table(format!("`{missing}` is null")))?;
        let [own, title] = [raw.name, raw.title].map(|text| {
            // SAFETY: the header has it end with a 0 and stay.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        });
        let (Some(own), Some(title)) = (own, title) else {
            return Err(table("`name` or `title` is null".into()));
        };
        if own != name {
            return Err(PluginError::Name { path: path.to_path_buf(), expected: name.into(), got: own });
        }
        let (graphs, timestamp) = (graphs(raw.graphs).map_err(&table)?, timestamp(raw.clock).map_err(&table)?);
        Ok(PluginLibrary { functions, graphs, timestamp, title, _library: library })
    }
}

/// A table that a library may have beside, of which every version begins with its bytes; none where it has none.
fn beside<T: Copy>(name: &str, raw: *const T) -> Result<Option<T>, String> {
    if raw.is_null() {
        return Ok(None);
    }
    if !raw.is_aligned() {
        return Err(format!("`{name}` is no table"));
    }
    // SAFETY: the header has the table stay and begin with its bytes.
    let bytes = unsafe { raw.cast::<u32>().read() } as usize;
    if bytes < size_of::<T>() {
        return Err(format!("expected `{name}` of {} bytes, got {bytes}", size_of::<T>()));
    }
    // SAFETY: it has as many bytes.
    Ok(Some(unsafe { raw.read() }))
}

fn graphs(raw: *const RawGraphs) -> Result<Option<GraphFunctions>, String> {
    let functions = |raw| GraphFunctions::of(&raw).map_err(|missing| format!("`{missing}` is null"));
    beside("graphs", raw)?.map(functions).transpose()
}

fn timestamp(raw: *const RawClock) -> Result<Option<TimestampFunction>, String> {
    let function = |raw: RawClock| raw.timestamp.ok_or_else(|| "`clock.timestamp` is null".to_owned());
    beside("clock", raw)?.map(function).transpose()
}

/// Whether a backend may be called so: a word that command lines and kernel names take.
pub(crate) fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    name.len() <= MOST_NAME && name.starts_with(|first: char| first.is_ascii_lowercase()) && name.chars().all(is_letter)
}
