//! A library, loaded, with its functions checked.

use crate::abi::{BackendFunctions, ENTRY, RawBackend, VERSION};
use std::ffi::CStr;
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
        if (bytes as usize) < size_of::<RawBackend>() {
            return Err(table(format!("expected a table of {} bytes, got {bytes}", size_of::<RawBackend>())));
        }
        // SAFETY: it is of this version, and has as many bytes.
        let raw = unsafe { raw.read() };
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
        Ok(PluginLibrary { functions, title, _library: library })
    }
}

/// Whether a backend may be called so: a word that command lines and kernel names take.
pub(crate) fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    name.len() <= MOST_NAME && name.starts_with(|first: char| first.is_ascii_lowercase()) && name.chars().all(is_letter)
}
