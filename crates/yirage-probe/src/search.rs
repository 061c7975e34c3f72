//! Where a family's libraries are looked for: the loader's own order as far as files tell it, with the folders of the
//! maker's installers between.
//!
//! First `LD_LIBRARY_PATH`, then the roots that the maker's variables name, the folders of its installers, the folders of
//! `/etc/ld.so.conf`, and the system's own. Nothing is taken from the working folder: what is no absolute path is passed
//! over. Reads folders and never opens a library.

use crate::elf;
use crate::environment::ProbeEnvironment;
use crate::error::ProbeError;
use crate::limits::FOLDER_LIST_BYTES;
use std::path::{Path, PathBuf};
use yirage_mmap::read_text_if_there;

/// The system's own folders, as the loaders of the usual distributions have them.
const SYSTEM: &[&str] = &[
    #[cfg(target_arch = "x86_64")]
    "/lib/x86_64-linux-gnu",
    #[cfg(target_arch = "x86_64")]
    "/usr/lib/x86_64-linux-gnu",
    #[cfg(target_arch = "aarch64")]
    "/lib/aarch64-linux-gnu",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
];

/// Folders of a root in which libraries lie.
const IN_ROOT: &[&str] = &["lib64", "lib", "hip/lib", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"];

/// Which files would do, and where they are installed.
pub(crate) struct LibrarySearch {
    /// Names of files, most wanted first.
    pub(crate) libraries: &'static [&'static str],
    /// Variables that name the root of an installation.
    pub(crate) roots: &'static [&'static str],
    /// Folders of the maker's installers.
    pub(crate) folders: &'static [&'static str],
    /// Whether only the maker's own folders count, because another maker's files have the same names.
    pub(crate) own_folders_only: bool,
    /// Names with which folders of other makers begin whose files have the same names.
    pub(crate) foreign: &'static [&'static str],
}

/// The first file that this processor can load, with why those before it were passed over: the loader goes on behind a file
/// that is for another processor, and so does this. `more` are folders that are searched behind all others.
///
/// # Errors
/// Why the first file that is there will not do, or that there is none.
pub(crate) fn usable_file(
    wanted: &LibrarySearch,
    more: &[PathBuf],
    surroundings: &ProbeEnvironment,
) -> Result<(PathBuf, Vec<ProbeError>), ProbeError> {
    let (files, folders) = candidates(wanted, more, surroundings);
    let mut passed_over = Vec::new();
    for file in files {
        match elf::check(&file) {
            Ok(()) => return Ok((file, passed_over)),
            Err(error) => passed_over.push(error),
        }
    }
    let not_found = ProbeError::NotFound { libraries: wanted.libraries, folders };
    Err(passed_over.into_iter().next().unwrap_or(not_found))
}

/// The files that are there, most wanted first, and how many folders were searched.
fn candidates(wanted: &LibrarySearch, more: &[PathBuf], surroundings: &ProbeEnvironment) -> (Vec<PathBuf>, usize) {
    let mut folders = folders(wanted, surroundings);
    folders.extend_from_slice(more);
    let mut found = Vec::new();
    for library in wanted.libraries {
        for file in folders.iter().map(|folder| folder.join(library)) {
            if file.exists() && !is_foreign(&file, wanted.foreign) && !found.contains(&file) {
                found.push(file);
            }
        }
    }
    (found, folders.len())
}

/// Every folder once, in order.
fn folders(wanted: &LibrarySearch, surroundings: &ProbeEnvironment) -> Vec<PathBuf> {
    let here = |folder: &&str| surroundings.path(Path::new(folder));
    let roots = wanted.roots.iter().filter_map(|name| surroundings.variable(name)).map(PathBuf::from);
    let in_roots = roots.flat_map(|root| IN_ROOT.iter().map(move |folder| root.join(folder)));
    let own = in_roots.filter(|folder| folder.is_absolute()).chain(wanted.folders.iter().map(here));
    let all: Vec<PathBuf> = if wanted.own_folders_only {
        own.collect()
    } else {
        let system = configured(surroundings).into_iter().chain(SYSTEM.iter().map(here));
        listed(surroundings).into_iter().chain(own).chain(system).collect()
    };
    let mut once = Vec::new();
    for folder in all {
        if !once.contains(&folder) {
            once.push(folder);
        }
    }
    once
}

/// The folders of `LD_LIBRARY_PATH`.
fn listed(surroundings: &ProbeEnvironment) -> Vec<PathBuf> {
    let list = surroundings.variable("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(list).filter(|folder| folder.is_absolute()).collect()
}

/// The folders of `/etc/ld.so.conf` and of the files that it includes.
fn configured(surroundings: &ProbeEnvironment) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in lines(&surroundings.path(Path::new("/etc/ld.so.conf"))) {
        match line.strip_prefix("include ") {
            Some(pattern) => {
                let files = included(pattern.trim(), surroundings);
                folders.extend(files.iter().flat_map(|file| lines(file)));
            }
            None => folders.push(line),
        }
    }
    folders.retain(|folder| folder.starts_with('/'));
    folders.iter().map(|folder| surroundings.path(Path::new(folder))).collect()
}

/// The lines of a file that say something. One that is not there or cannot be read says nothing: the loader goes on too.
fn lines(file: &Path) -> Vec<String> {
    let text = read_text_if_there(file, FOLDER_LIST_BYTES).ok().flatten().unwrap_or_default();
    let line = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

/// The files of `FOLDER/*.conf`, the one pattern that distributions use, in the order of their names.
fn included(pattern: &str, surroundings: &ProbeEnvironment) -> Vec<PathBuf> {
    let Some(folder) = pattern.strip_suffix("/*.conf") else { return vec![surroundings.path(Path::new(pattern))] };
    let entries = std::fs::read_dir(surroundings.path(Path::new(folder)));
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "conf")).collect();
    files.sort();
    files
}

/// Whether the file, wherever links lead, lies in a folder of another maker.
fn is_foreign(file: &Path, foreign: &[&str]) -> bool {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let names = file.components().filter_map(|part| part.as_os_str().to_str());
    names.into_iter().any(|name| foreign.iter().any(|prefix| name.starts_with(prefix)))
}
