//! The cache on disk, in the layout that the hub's own client uses.
//!
//! ```text
//! models--ORG--NAME/refs/main                the commit that `main` was
//! models--ORG--NAME/blobs/ETAG               the bytes, once
//! models--ORG--NAME/blobs/ETAG.incomplete    some of the bytes, from the first one on
//! models--ORG--NAME/snapshots/COMMIT/FILE    -> ../../blobs/ETAG
//! .locks/models--ORG--NAME/ETAG.lock         held while a blob is written; not empty where that did not end
//! ```
//! Blobs and links appear by renaming, so a reader never sees half of one. Links lead to blobs of the same repository:
//! what leads elsewhere may be read, but is not listed as ours, and nothing behind it is removed.

use crate::HubError;
use crate::limits::{MAX_DEPTH, MAX_FILES, MAX_NOTE_BYTES};
use crate::reference::is_repo_part;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use yirage_mmap::read_text;

/// How names of blobs end that are not complete.
const UNFINISHED: &str = ".incomplete";
/// What a lock holds while its blob is written.
const WRITING: &[u8] = b"a download is on its way, or was when its program or machine stopped\n";

/// A file of a cached model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedFile {
    /// Its name in the repository.
    pub name: String,
    /// Where it can be opened.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A cached repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedModel {
    /// `ORG/NAME`; `hf:` before it makes a reference.
    pub repo: String,
    /// The files that are complete, of all revisions, each once.
    pub files: Vec<CachedFile>,
    /// What the repository takes on disk, unfinished downloads included, in bytes.
    pub bytes: u64,
    /// How much of that are unfinished downloads, in bytes.
    pub unfinished_bytes: u64,
    /// How many links in it lead out of the cache; they are no files of the model.
    pub links_out: usize,
}

/// What a removal gave back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalTotals {
    /// How many files are gone.
    pub files: usize,
    /// How many bytes are free again.
    pub bytes: u64,
}

/// The cache folder.
#[derive(Debug, Clone)]
pub(crate) struct HubCache {
    root: PathBuf,
}

/// The right to write one blob, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Whether the last one who wrote the blob did not come to an end.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.file.metadata().is_ok_and(|data| data.len() > 0)
    }

    /// Notes on disk that the blob is being written.
    pub(crate) fn begin(&mut self) -> Result<(), HubError> {
        self.file.set_len(0).map_err(HubError::io("empty the lock", &self.path))?;
        self.file.write_all(WRITING).map_err(HubError::io("write the lock", &self.path))?;
        self.file.sync_all().map_err(HubError::io("write out the lock", &self.path))
    }

    /// Notes that the blob is whole and in its place.
    pub(crate) fn end(&mut self) -> Result<(), HubError> {
        self.file.set_len(0).map_err(HubError::io("empty the lock", &self.path))
    }
}

impl HubCache {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The cache folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    fn repo_folder(&self, repo: &str) -> PathBuf {
        self.root.join(format!("models--{}", repo.replace('/', "--")))
    }

    /// Where `etag`'s bytes are, or will be.
    pub(crate) fn blob(&self, repo: &str, etag: &str) -> PathBuf {
        self.repo_folder(repo).join("blobs").join(etag)
    }

    /// Where `etag`'s bytes are while some of them are still missing.
    pub(crate) fn unfinished(&self, repo: &str, etag: &str) -> PathBuf {
        self.blob(repo, &format!("{etag}{UNFINISHED}"))
    }

    fn snapshot(&self, repo: &str, commit: &str) -> PathBuf {
        self.repo_folder(repo).join("snapshots").join(commit)
    }

    fn lock_folder(&self, repo: &str) -> PathBuf {
        self.root.join(".locks").join(format!("models--{}", repo.replace('/', "--")))
    }

    /// Waits until no other process writes `etag`, and keeps them out while the result lives.
    pub(crate) fn lock(&self, repo: &str, etag: &str) -> Result<Lock, HubError> {
        let folder = self.lock_folder(repo);
        create_folder(&folder)?;
        let path = folder.join(format!("{etag}.lock"));
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(HubError::io("open the lock", &path))?;
        file.lock().map_err(HubError::io("wait for the lock", &path))?;
        Ok(Lock { file, path })
    }

    /// Whether `etag` is being written, or was when that stopped in its midst.
    pub(crate) fn is_being_written(&self, repo: &str, etag: &str) -> bool {
        file_size(&self.lock_folder(repo).join(format!("{etag}.lock"))) > 0
    }

    /// Makes `file` of `commit` stand for the blob `etag`, and returns its path.
    pub(crate) fn link(&self, repo: &str, commit: &str, file: &str, etag: &str) -> Result<PathBuf, HubError> {
        let path = self.snapshot(repo, commit).join(file);
        let folder = path.parent().expect("a file in a snapshot has a folder");
        create_folder(folder)?;
        let depth = 2 + file.matches('/').count();
        let target: PathBuf = std::iter::repeat_n("..", depth).chain(["blobs", etag]).collect();
        let fresh = folder.join(fresh_name());
        let _ = fs::remove_file(&fresh);
        make_link(&target, &self.blob(repo, etag), &fresh).map_err(HubError::io("link to the blob", &fresh))?;
        fs::rename(&fresh, &path).map_err(HubError::io("put the link in place", &path))?;
        Ok(path)
    }

    /// Notes that `revision` is `commit`.
    pub(crate) fn write_ref(&self, repo: &str, revision: &str, commit: &str) -> Result<(), HubError> {
        let path = self.repo_folder(repo).join("refs").join(revision);
        let folder = path.parent().expect("a reference has a folder");
        create_folder(folder)?;
        let fresh = folder.join(fresh_name());
        fs::write(&fresh, commit).map_err(HubError::io("write the reference", &fresh))?;
        fs::rename(&fresh, &path).map_err(HubError::io("put the reference in place", &path))
    }

    /// Folders of `repo`'s snapshots: the one that `main` is first, then the others by name.
    pub(crate) fn snapshots(&self, repo: &str) -> Vec<PathBuf> {
        let main = read_text(&self.repo_folder(repo).join("refs/main"), MAX_NOTE_BYTES).ok();
        let main = main.map(|commit| commit.trim().to_owned()).filter(|commit| is_plain_name(commit));
        let all = self.repo_folder(repo).join("snapshots");
        let mut commits: Vec<String> = if is_own_folder(&all) { names_in(&all) } else { Vec::new() };
        commits.sort_by_key(|commit| (Some(commit) != main.as_ref(), commit.clone()));
        commits.iter().map(|commit| self.snapshot(repo, commit)).filter(|path| is_own_folder(path)).collect()
    }

    /// Names of the complete files of a snapshot, sorted.
    pub(crate) fn files_in(snapshot: &Path) -> Vec<String> {
        let mut files = Vec::new();
        collect_files(snapshot, "", MAX_DEPTH, &mut files);
        files.sort();
        files
    }

    /// Every cached repository with at least one complete file or unfinished download.
    pub(crate) fn list(&self) -> Vec<CachedModel> {
        let mut models: Vec<CachedModel> = names_in(&self.root)
            .iter()
            .filter_map(|name| name.strip_prefix("models--")?.split_once("--"))
            .filter(|(org, name)| is_repo_part(org) && is_repo_part(name))
            .map(|(org, name)| self.describe(&format!("{org}/{name}")))
            .filter(|model| model.bytes > 0 || !model.files.is_empty() || model.links_out > 0)
            .collect();
        models.sort_by(|a, b| a.repo.cmp(&b.repo));
        models
    }

    fn describe(&self, repo: &str) -> CachedModel {
        let folder = self.repo_folder(repo);
        let mut model =
            CachedModel { repo: repo.to_owned(), files: Vec::new(), bytes: 0, unfinished_bytes: 0, links_out: 0 };
        let real_folder = fs::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
        let blobs = folder.join("blobs");
        let parts = [&folder, &blobs, &folder.join("snapshots")];
        model.links_out = parts.into_iter().filter(|part| part.is_symlink()).count();
        if folder.is_symlink() {
            return model;
        }
        if is_own_folder(&blobs) {
            for name in names_in(&blobs) {
                let size = own_size(&blobs.join(&name));
                model.bytes += size;
                model.unfinished_bytes += if name.ends_with(UNFINISHED) { size } else { 0 };
            }
        }
        let mut files: BTreeMap<(String, PathBuf), CachedFile> = BTreeMap::new();
        for snapshot in self.snapshots(repo) {
            for name in Self::files_in(&snapshot) {
                let path = snapshot.join(&name);
                let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                if !real.starts_with(&real_folder) {
                    model.links_out += 1;
                    continue;
                }
                let bytes = file_size(&path);
                files.entry((name.clone(), real)).or_insert(CachedFile { name, path, bytes });
            }
        }
        let beside = files.iter().filter(|((_, real), _)| !real.starts_with(real_folder.join("blobs")));
        model.bytes += beside.map(|(_, file)| file.bytes).sum::<u64>();
        model.files = files.into_values().collect();
        model
    }

    /// Removes a whole repository.
    ///
    /// # Errors
    /// It is not in the cache, it leads out of it, or the file system says no.
    pub(crate) fn remove_repo(&self, repo: &str) -> Result<RemovalTotals, HubError> {
        let folder = self.require_own(repo)?;
        let before = self.describe(repo);
        // Links inside go themselves, not what they lead to.
        fs::remove_dir_all(&folder).map_err(HubError::io("remove", &folder))?;
        if is_own_folder(&self.root.join(".locks")) {
            let _ = fs::remove_dir_all(self.lock_folder(repo));
        }
        Ok(RemovalTotals { files: before.files.len(), bytes: before.bytes })
    }

    /// The folder of `repo`, if it is one and no link to one.
    fn require_own(&self, repo: &str) -> Result<PathBuf, HubError> {
        let folder = self.repo_folder(repo);
        match fs::symlink_metadata(&folder) {
            Ok(data) if data.is_dir() => Ok(folder),
            Ok(data) if data.is_symlink() => Err(HubError::Leaves { path: folder }),
            _ => Err(HubError::NotCached { name: repo.to_owned(), cache: self.root.clone() }),
        }
    }

    /// Removes single files of a repository from all its snapshots, and the blobs that nothing else needs. Where the
    /// repository has unfinished downloads only, nobody can tell of which files: they all go.
    ///
    /// # Errors
    /// None of them is in the cache, or the file system says no.
    pub(crate) fn remove_files(&self, repo: &str, names: &[String]) -> Result<RemovalTotals, HubError> {
        let folder = self.require_own(repo)?;
        let mut removed = RemovalTotals { files: 0, bytes: 0 };
        let (mut freed, mut needed) = (BTreeSet::new(), BTreeSet::new());
        for snapshot in self.snapshots(repo) {
            for name in Self::files_in(&snapshot) {
                let path = snapshot.join(&name);
                let real = fs::canonicalize(&path).map_err(HubError::io("follow", &path))?;
                if names.contains(&name) {
                    fs::remove_file(&path).map_err(HubError::io("remove", &path))?;
                    removed.files += 1;
                    freed.insert(real);
                } else {
                    needed.insert(real);
                }
            }
        }
        if removed.files == 0 {
            let there = self.describe(repo);
            if there.files.is_empty() && there.unfinished_bytes > 0 {
                return self.remove_repo(repo);
            }
            return Err(HubError::NotCached {
                name: format!("{repo}: {}", names.join(", ")),
                cache: self.root.clone(),
            });
        }
        let blobs = folder.join("blobs");
        let real_blobs = fs::canonicalize(&blobs).ok().filter(|_| is_own_folder(&blobs));
        let ours = |blob: &&PathBuf| real_blobs.as_ref().is_some_and(|blobs| blob.starts_with(blobs)) && blob.is_file();
        for blob in freed.difference(&needed).filter(ours) {
            removed.bytes += file_size(blob);
            fs::remove_file(blob).map_err(HubError::io("remove", blob))?;
        }
        Ok(removed)
    }

    /// Removes a blob that is not what it should be.
    pub(crate) fn remove_blob(&self, repo: &str, etag: &str) -> Result<(), HubError> {
        let blob = self.blob(repo, etag);
        fs::remove_file(&blob).map_err(HubError::io("remove", &blob))
    }
}

/// Whether `name` is safe as one part of a path: a commit, an entity tag.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=128).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with('.')
}

/// Whether `name` stays inside the folder it is joined to: a file in a repository.
pub(crate) fn is_inner_path(name: &str) -> bool {
    let part_is_fine = |part: &str| !part.is_empty() && part != "." && part != "..";
    let forbidden = |letter: char| letter.is_control() || "\\:*?\"<>|".contains(letter);
    name.len() <= 1024 && !name.contains(forbidden) && name.split('/').all(part_is_fine)
}

/// Creates a folder and those above it.
pub(crate) fn create_folder(folder: &Path) -> Result<(), HubError> {
    fs::create_dir_all(folder).map_err(HubError::io("create the folder", folder))
}

/// A hidden name that no other thread or process uses.
fn fresh_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!(".{}-{}.new", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(MAX_FILES).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn file_size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |data| if data.is_file() { data.len() } else { 0 })
}

/// The size of a regular file that is no link.
fn own_size(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |data| if data.is_file() { data.len() } else { 0 })
}

/// Whether `path` is a folder itself, and no link to one.
fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.is_dir())
}

/// Names of the regular files in `folder` and below, those that links lead to included; folders behind links are not
/// looked into, and names that no file of a repository can have are passed over.
fn collect_files(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<String>) {
    for name in names_in(folder).into_iter().filter(|name| is_inner_path(name)) {
        let path = folder.join(&name);
        let full = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        if is_own_folder(&path) {
            if depth > 0 {
                collect_files(&path, &full, depth - 1, files);
            }
            continue;
        }
        let is_file = fs::metadata(&path).is_ok_and(|data| data.is_file());
        if is_file && !name.starts_with('.') && files.len() < MAX_FILES {
            files.push(full);
        }
    }
}

#[cfg(unix)]
fn make_link(relative: &Path, _blob: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(relative, link)
}

/// Symbolic links need a privilege elsewhere; a second name for the same bytes does as well.
#[cfg(not(unix))]
fn make_link(_relative: &Path, blob: &Path, link: &Path) -> io::Result<()> {
    fs::hard_link(blob, link).or_else(|_| fs::copy(blob, link).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_blob(cache: &HubCache, repo: &str, etag: &str, bytes: &[u8]) {
        let path = cache.blob(repo, etag);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn links_lead_to_blobs_and_main_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = HubCache::new(folder.path().to_owned());
        with_blob(&cache, "o/r", "e1", b"one");
        with_blob(&cache, "o/r", "e2", b"two!");
        cache.link("o/r", "aaaa", "m.gguf", "e1").unwrap();
        let path = cache.link("o/r", "bbbb", "deep/er/m.gguf", "e2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two!");
        cache.link("o/r", "bbbb", "deep/er/m.gguf", "e2").unwrap();
        cache.write_ref("o/r", "main", "bbbb").unwrap();
        let snapshots = cache.snapshots("o/r");
        assert!(snapshots[0].ends_with("bbbb") && snapshots[1].ends_with("aaaa"));
        assert_eq!(HubCache::files_in(&snapshots[0]), ["deep/er/m.gguf"]);
        let listed = cache.list();
        assert_eq!((listed.len(), listed[0].repo.as_str(), listed[0].bytes), (1, "o/r", 7));
    }

    #[test]
    fn removing_keeps_what_others_need() {
        let folder = tempfile::tempdir().unwrap();
        let cache = HubCache::new(folder.path().to_owned());
        with_blob(&cache, "o/r", "e1", b"shared");
        with_blob(&cache, "o/r", "e2", b"own");
        for (commit, file, etag) in [("c1", "a.gguf", "e1"), ("c1", "b.gguf", "e2"), ("c2", "c.gguf", "e1")] {
            cache.link("o/r", commit, file, etag).unwrap();
        }
        let names = ["a.gguf".to_owned(), "b.gguf".to_owned()];
        assert_eq!(cache.remove_files("o/r", &names).unwrap(), RemovalTotals { files: 2, bytes: 3 });
        assert!(cache.blob("o/r", "e1").is_file() && !cache.blob("o/r", "e2").exists());
        assert!(matches!(cache.remove_files("o/r", &names), Err(HubError::NotCached { .. })));
        assert_eq!(cache.remove_repo("o/r").unwrap(), RemovalTotals { files: 1, bytes: 6 });
        assert!(matches!(cache.remove_repo("o/r"), Err(HubError::NotCached { .. })));
        assert!(cache.list().is_empty());
    }

    #[test]
    fn unfinished_downloads_are_told_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = HubCache::new(folder.path().to_owned());
        with_blob(&cache, "o/r", "e1.incomplete", b"ha");
        let listed = cache.list();
        assert_eq!((listed[0].files.len(), listed[0].bytes, listed[0].unfinished_bytes), (0, 2, 2));
        assert_eq!(cache.remove_files("o/r", &["m.gguf".to_owned()]).unwrap(), RemovalTotals { files: 0, bytes: 2 });
        assert!(cache.list().is_empty());
    }

    #[test]
    fn a_dangling_link_and_a_strange_reference_are_no_model() {
        let folder = tempfile::tempdir().unwrap();
        let cache = HubCache::new(folder.path().to_owned());
        cache.link("o/r", "c1", "m.gguf", "gone").unwrap_or_default();
        cache.write_ref("o/r", "main", "../../../etc").unwrap_or_default();
        assert!(cache.snapshots("o/r").iter().all(|snapshot| HubCache::files_in(snapshot).is_empty()));
    }

    #[test]
    fn names_from_outside_stay_inside() {
        for name in ["a", "a/b.gguf", "1_Pooling/config.json", "a..b"] {
            assert!(is_inner_path(name), "{name}");
        }
        for name in ["", "/a", "a/", "../a", "a/../b", "a//b", "a\\b", "C:x", "a\0", "a\nb"] {
            assert!(!is_inner_path(name), "{name:?}");
        }
        assert!(is_plain_name("abc.def-1") && !is_plain_name("..") && !is_plain_name("a/b") && !is_plain_name(""));
    }
}
