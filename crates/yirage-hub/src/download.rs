//! One file from the hub into the cache: resumed where it stopped, checked, and put in place as a whole.

use crate::api::RemoteFile;
use crate::cache::{HubCache, create_folder};
use crate::http::{FetchMode, Http, header};
use crate::pace::TransferMonitor;
use crate::{CacheVerification, DownloadProgress, HubError};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use yirage_mmap::{is_there, open_regular};

const CHUNK_BYTES: usize = 1 << 20;
/// Left free on the disk beyond what a download needs.
const DISK_MARGIN_BYTES: u64 = 64 << 20;

/// Fetches `file` unless its blob is there, and returns the blob's path.
///
/// A blob that is there is taken for whole by its size, unless `verify` asks for more or the download that made it was
/// interrupted: then its bytes are compared with the checksum, and wrong ones fetched anew.
///
/// The bytes are checked against the file's SHA-256 where the hub gives one (all large files); small files are checked
/// by their size. A file that goes on from an earlier, interrupted download and then fails its checksum is fetched
/// once more from its start, because what was kept may have been of another day.
pub(crate) fn fetch(
    http: &Http,
    cache: &HubCache,
    repo: &str,
    file: &RemoteFile,
    verify: CacheVerification,
    progress: &dyn DownloadProgress,
) -> Result<PathBuf, HubError> {
    let blob = cache.blob(repo, &file.etag);
    let doubted = || verify == CacheVerification::Always || cache.is_being_written(repo, &file.etag);
    if is_complete(&blob, file) && !doubted() {
        return Ok(blob);
    }
    let mut lock = cache.lock(repo, &file.etag)?;
    if is_complete(&blob, file) {
        let doubted = verify == CacheVerification::Always || lock.was_interrupted();
        if !doubted || wrong_checksum(&blob, &file.name, file.sha256.as_deref(), progress)?.is_none() {
            lock.end()?;
            return Ok(blob);
        }
        progress.note(&format!("{}: its bytes in the cache are not the promised ones: fetching it anew", file.name));
        cache.remove_blob(repo, &file.etag)?;
    }
    lock.begin()?;
    let folder = blob.parent().expect("a blob has a folder");
    create_folder(folder)?;
    let partial = cache.unfinished(repo, &file.etag);
    let kept = fs::metadata(&partial).map_or(0, |data| data.len());
    check_space(cache.root(), file.bytes.unwrap_or(0).saturating_sub(kept))?;
    match Transfer::open(http, file, &partial)?.run(progress) {
        Err(HubError::Checksum { .. }) if kept > 0 => {
            progress.note("the part that was kept does not fit: fetching the file from its start");
            Transfer::open(http, file, &partial)?.run(progress)?;
        }
        result => result?,
    }
    fs::rename(&partial, &blob).map_err(HubError::io("put the file in place", &blob))?;
    sync_folder(folder)?;
    lock.end()?;
    progress.finish();
    Ok(blob)
}

/// The checksum of the file at `path` if it is not the promised one; where none is known, the size has to do, which is
/// said.
pub(crate) fn wrong_checksum(
    path: &Path,
    name: &str,
    promised: Option<&str>,
    progress: &dyn DownloadProgress,
) -> Result<Option<String>, HubError> {
    let Some(promised) = promised else {
        progress.note(&format!("{name}: the hub gives no SHA-256 of small files; its size was compared"));
        return Ok(None);
    };
    progress.note(&format!("{name}: comparing its SHA-256"));
    let (mut file, mut hash, mut buffer) = (open_regular(path)?, Sha256::new(), vec![0; CHUNK_BYTES]);
    loop {
        match file.read(&mut buffer).map_err(HubError::io("read", path))? {
            0 => break,
            length => hash.update(&buffer[..length]),
        }
    }
    Ok(Some(hex(&hash.finalize())).filter(|found| found != promised))
}

/// Has a folder's entries on disk.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> Result<(), HubError> {
    let opened = File::open(folder).map_err(HubError::io("open the folder", folder))?;
    opened.sync_all().map_err(HubError::io("write out the folder", folder))
}

/// Folders cannot be written out elsewhere.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> Result<(), HubError> {
    Ok(())
}

/// Fails if the disk of `folder` has not `bytes` and a margin left.
///
/// # Errors
/// [`HubError::DiskFull`]; a disk that does not tell is assumed to have room.
pub(crate) fn check_space(folder: &Path, bytes: u64) -> Result<(), HubError> {
    create_folder(folder)?;
    let free_bytes = fs4::available_space(folder).unwrap_or(u64::MAX);
    let needed_bytes = bytes.saturating_add(DISK_MARGIN_BYTES);
    if needed_bytes > free_bytes {
        return Err(HubError::DiskFull { folder: folder.to_owned(), needed_bytes, free_bytes });
    }
    Ok(())
}

fn is_complete(blob: &Path, file: &RemoteFile) -> bool {
    fs::metadata(blob).is_ok_and(|data| data.is_file() && file.bytes.is_none_or(|bytes| bytes == data.len()))
}

/// A download in progress: the partial file, how far it is, and the checksum so far.
struct Transfer<'a> {
    http: &'a Http,
    remote: &'a RemoteFile,
    path: &'a Path,
    file: File,
    hash: Sha256,
    done_bytes: u64,
    pace: TransferMonitor,
}

/// How one connection ended.
enum TransferEnd {
    /// The server sent all it had.
    Complete,
    /// It broke: try again from here.
    Cut(String),
}

impl<'a> Transfer<'a> {
    /// Opens the partial file and takes in what it holds.
    fn open(http: &'a Http, remote: &'a RemoteFile, path: &'a Path) -> Result<Self, HubError> {
        if is_there(path)? {
            open_regular(path)?;
        }
        let file = File::options().create(true).truncate(false).read(true).write(true).open(path);
        let file = file.map_err(HubError::io("open", path))?;
        let mut transfer = Self { http, remote, path, file, hash: Sha256::new(), done_bytes: 0, pace: http.pace() };
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let length = transfer.file.read(&mut buffer).map_err(HubError::io("read", path))?;
            if length == 0 {
                break;
            }
            transfer.hash.update(&buffer[..length]);
            transfer.done_bytes += length as u64;
        }
        if transfer.remote.bytes.is_some_and(|bytes| transfer.done_bytes > bytes) {
            transfer.restart()?;
        }
        Ok(transfer)
    }

    fn restart(&mut self) -> Result<(), HubError> {
        self.file.set_len(0).map_err(HubError::io("empty", self.path))?;
        self.file.seek(SeekFrom::Start(0)).map_err(HubError::io("rewind", self.path))?;
        self.hash = Sha256::new();
        self.done_bytes = 0;
        Ok(())
    }

    /// Fetches the rest and checks the whole.
    fn run(mut self, progress: &dyn DownloadProgress) -> Result<(), HubError> {
        progress.start(&self.remote.name, self.remote.bytes, self.done_bytes);
        let retry = self.http.retry();
        let mut tries_without_progress = 0;
        while self.remote.bytes != Some(self.done_bytes) {
            let before = self.done_bytes;
            self.pace.check(&self.remote.url)?;
            match self.connect(progress)? {
                TransferEnd::Complete => break,
                TransferEnd::Cut(_) if self.done_bytes > before => tries_without_progress = 0,
                TransferEnd::Cut(reason) => {
                    tries_without_progress += 1;
                    if tries_without_progress >= retry.attempts {
                        let (url, done_bytes) = (self.remote.url.clone(), self.done_bytes);
                        return Err(HubError::Broken { url, done_bytes, attempts: tries_without_progress, reason });
                    }
                    std::thread::sleep(retry.first_delay);
                }
            }
        }
        self.file.sync_all().map_err(HubError::io("write out", self.path))?;
        self.check()
    }

    /// One connection: asks for what is missing and writes what comes.
    fn connect(&mut self, progress: &dyn DownloadProgress) -> Result<TransferEnd, HubError> {
        let answer = self.http.ask(&self.remote.url, FetchMode::BytesFrom(self.done_bytes), &self.pace, progress)?;
        self.pace.connected();
        let start = match answer.status().as_u16() {
            206 => header(answer.headers(), "content-range").and_then(range_start),
            416 => None,
            _ => Some(0),
        };
        if start != Some(self.done_bytes) {
            // The server does not continue where we stopped: start over, if that is not where we are already.
            if self.done_bytes == 0 {
                let reason = "the server sent a part that was not asked for".to_owned();
                return Err(HubError::Protocol { url: self.remote.url.clone(), reason });
            }
            self.restart()?;
            if start != Some(0) {
                return Ok(TransferEnd::Cut("the server cannot continue the file".to_owned()));
            }
        }
        self.receive(answer.into_body().into_reader(), progress)
    }

    fn receive(&mut self, mut body: impl Read, progress: &dyn DownloadProgress) -> Result<TransferEnd, HubError> {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let length = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Ok(TransferEnd::Cut(error.to_string())),
            };
            self.file.write_all(&buffer[..length]).map_err(HubError::io("write", self.path))?;
            self.hash.update(&buffer[..length]);
            self.done_bytes += length as u64;
            if let Some(bytes) = self.remote.bytes.filter(|bytes| self.done_bytes > *bytes) {
                let reason = format!("more than the promised {bytes} bytes");
                self.restart()?;
                return Err(HubError::Protocol { url: self.remote.url.clone(), reason });
            }
            progress.advance(self.done_bytes);
            self.pace.took(&self.remote.url, length as u64)?;
        }
        match self.remote.bytes {
            Some(bytes) if self.done_bytes < bytes => Ok(TransferEnd::Cut("the connection ended early".to_owned())),
            _ => Ok(TransferEnd::Complete),
        }
    }

    /// Compares the checksum; wrong bytes are not kept.
    fn check(mut self) -> Result<(), HubError> {
        let found = hex(&std::mem::take(&mut self.hash).finalize());
        match &self.remote.sha256 {
            Some(promised) if *promised != found => {
                let _ = fs::remove_file(self.path);
                Err(HubError::Checksum { file: self.remote.name.clone(), found, promised: promised.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// Where `bytes 5-9/10` starts.
fn range_start(text: &str) -> Option<u64> {
    text.trim().strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(range_start("bytes 5-9/10"), Some(5));
        assert_eq!(range_start("bytes */10"), None);
        assert_eq!(range_start("items 5-9/10"), None);
    }

    #[test]
    fn a_full_disk_is_told_with_numbers() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_space(folder.path(), 1).is_ok());
        let message = check_space(folder.path(), u64::MAX / 2).unwrap_err().to_string();
        assert!(message.contains("bytes are needed") && message.contains("HF_HUB_CACHE"), "{message}");
    }
}
