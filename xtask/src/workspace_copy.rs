//! A copy of the workspace, to be changed and built. It does not know what is changed in it, and why.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders that no build reads.
const SKIPPED: &[&str] = &["target", ".git", "fuzz"];

/// The copy, and where builds of it go.
pub(crate) struct WorkspaceCopy {
    /// The copy's root.
    pub(crate) root: PathBuf,
    /// The workspace's own build folder: the copy's third-party crates are the same.
    pub(crate) target: PathBuf,
}

impl WorkspaceCopy {
    /// A copy of the workspace at `root`, in a folder of this name. What an earlier copy has already is not written again,
    /// so it is not built again either.
    ///
    /// # Errors
    /// Whatever reading or writing says.
    pub(crate) fn of(root: &Path, name: &str) -> Result<WorkspaceCopy, String> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
        let scratch = WorkspaceCopy { root: target.join(name), target };
        mirror(root, &scratch.root).map_err(|error| format!("copying to {}: {error}", scratch.root.display()))?;
        Ok(scratch)
    }

    /// Writes files into the copy.
    ///
    /// # Errors
    /// Whatever writing says.
    pub(crate) fn write(&self, sources: &[(String, String)]) -> Result<(), String> {
        let write = |(path, text): &(String, String)| {
            fs::write(self.root.join(path), text).map_err(|error| format!("{path} in the copy: {error}"))
        };
        sources.iter().try_for_each(write)
    }

    /// Makes files of the copy what they are in the workspace at `root`.
    ///
    /// # Errors
    /// Whatever reading or writing says.
    pub(crate) fn restore<'a>(&self, root: &Path, paths: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
        let restore = |path: &str| put(&root.join(path), &self.root.join(path));
        paths.into_iter().try_for_each(restore).map_err(|error| error.to_string())
    }
}

/// Makes the folder `to` hold what `from` holds.
fn mirror(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let mut names: BTreeSet<OsString> = BTreeSet::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if SKIPPED.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if kind.is_dir() {
            mirror(&entry.path(), &to.join(&name))?;
        } else if kind.is_file() {
            put(&entry.path(), &to.join(&name))?;
        }
        names.insert(name);
    }
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            _ if names.contains(&entry.file_name()) => {}
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Makes the file `to` equal to `from`.
fn put(from: &Path, to: &Path) -> io::Result<()> {
    let bytes = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == bytes) { Ok(()) } else { fs::write(to, bytes) }
}
