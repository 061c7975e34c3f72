//! A maker's library of collectives, loaded: its version, and identities of groups.

use crate::error::CollectiveError;
use crate::symbols::{CollectiveFunctions, IdentityCalls, UniqueId};
use crate::vendor::{CollectiveVendor, VendorRow};
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;
use yirage_probe::{DriverLibrary, ProbeEnvironment, ProbeError};

/// The oldest NCCL whose calls are these: 2.7 has messages, and 2.10 averages.
const OLDEST: i32 = 21_000;
/// `sizeof(cnclCliqueId)`.
const CLIQUE: usize = 136;
/// `HCCL_ROOT_INFO_BYTES`.
const ROOT_INFO: usize = 4108;

/// A maker's library of collectives.
pub struct DeviceCollectives {
    pub(crate) row: &'static VendorRow,
    pub(crate) functions: CollectiveFunctions,
    version: Option<i32>,
    path: PathBuf,
}

/// What ranks that become a group have in common: bytes that one of them makes and gives to the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupId(Vec<u8>);

impl GroupId {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl CollectiveVendor {
    /// Its library, loaded.
    ///
    /// # Errors
    /// [`CollectiveError::Library`] with what to do.
    pub fn load(self, surroundings: &ProbeEnvironment) -> Result<Arc<DeviceCollectives>, CollectiveError> {
        let row = self.row();
        let library = row.library.library(surroundings).and_then(|library| DeviceCollectives::new(row, &library));
        library.map(Arc::new).map_err(|error| CollectiveError::Library {
            title: row.title,
            remedy: row.library.remedy(&error),
            why: error.to_string(),
        })
    }
}

impl DeviceCollectives {
    fn new(row: &'static VendorRow, library: &DriverLibrary) -> Result<DeviceCollectives, ProbeError> {
        let functions = CollectiveFunctions::of(library, &row.names)?;
        let mut version = None;
        if let (Some(ask), Some(call)) = (functions.version, row.names.version) {
            let mut found = 0;
            // SAFETY: a number is written to `found`.
            let code = unsafe { ask(&mut found) };
            if code != 0 {
                return Err(ProbeError::Code { path: library.path(), call, code });
            }
            // Two of the makers begin to count anew.
            let counts_as_nccl = call == "ncclGetVersion";
            if counts_as_nccl && found < OLDEST {
                let (found, needed) = (written(found), written(OLDEST));
                return Err(ProbeError::TooOld { path: library.path(), found, needed });
            }
            version = Some(found);
        }
        Ok(DeviceCollectives { row, functions, version, path: library.path() })
    }

    /// What it is, for people: whose, and which version where it says so.
    pub fn title(&self) -> String {
        match self.version {
            Some(version) => format!("{} {}", self.row.title, written(version)),
            None => self.row.title.to_owned(),
        }
    }

    /// Where it lies.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Bytes of an identity.
    pub fn id_bytes(&self) -> usize {
        match self.functions.identity {
            IdentityCalls::Unique { .. } => size_of::<UniqueId>(),
            IdentityCalls::Clique { .. } => CLIQUE,
            IdentityCalls::RootInfo { .. } => ROOT_INFO,
        }
    }

    /// A new identity: the rank that others are given it by makes it.
    ///
    /// # Errors
    /// [`CollectiveError::Library`] with what the library says.
    pub fn new_id(&self) -> Result<GroupId, CollectiveError> {
        let mut bytes = vec![0; self.id_bytes()];
        // SAFETY: each writes as many bytes as the maker's header says, which `id_bytes` has.
        let code = unsafe {
            match self.functions.identity {
                IdentityCalls::Unique { new, .. } => new(bytes.as_mut_ptr().cast()),
                IdentityCalls::Clique { new, .. } => {
                    // Its last number asks for an address that 8 divides.
                    let mut words = [0u64; CLIQUE / 8];
                    let code = new(words.as_mut_ptr().cast());
                    bytes = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                    code
                }
                IdentityCalls::RootInfo { new, .. } => new(bytes.as_mut_ptr()),
            }
        };
        if code != 0 {
            return Err(CollectiveError::Library {
                title: self.row.title,
                why: format!("no identity for a group: {} ({code})", self.said(code)),
                remedy: "check that the first rank may open a connection on this machine".into(),
            });
        }
        Ok(GroupId(bytes))
    }

    /// The identity that another rank has made and given.
    ///
    /// # Errors
    /// [`CollectiveError::Argument`] for other than [`DeviceCollectives::id_bytes`] bytes.
    pub fn id_of(&self, bytes: &[u8]) -> Result<GroupId, CollectiveError> {
        let wanted = self.id_bytes();
        match bytes.len() == wanted {
            true => Ok(GroupId(bytes.to_vec())),
            false => Err(CollectiveError::Argument(format!(
                "{}: expected an identity of {wanted} bytes, got {}; all ranks want the same library",
                self.row.title,
                bytes.len()
            ))),
        }
    }

    /// What an answer means, in the library's words.
    pub(crate) fn said(&self, code: i32) -> String {
        // SAFETY: the library keeps the text, which ends with a 0.
        let text = unsafe { (self.functions.said)(code) };
        if text.is_null() {
            return "no words for it".into();
        }
        // SAFETY: the library's text is no null, which was looked at, and ends with a 0.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

impl std::fmt::Debug for DeviceCollectives {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.title())
    }
}

/// `NCCL_VERSION`: 21805 is 2.18.5, and 2708 was 2.7.8.
fn written(version: i32) -> String {
    let scale = if version < 10_000 { 1000 } else { 10_000 };
    format!("{}.{}.{}", version / scale, version % scale / 100, version % 100)
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_written_as_their_makers_write_them() {
        assert_eq!([2708, 21805, 23203].map(super::written), ["2.7.8", "2.18.5", "2.32.3"]);
    }
}
