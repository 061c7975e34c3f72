//! The folder of entries: what is there, what is used, and what goes when there is no more room.

use crate::entry::PackedEntry;
use crate::folder::{self, StoreFile, StoreFileKind, StoreFolder};
use crate::header::{PREFIX, PackedHeader};
use crate::key::PackedKey;
use crate::writer::{NewEntry, PackedWriter};
use crate::{PackedError, limits, mark};
use fs4::FileExt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use yirage_mmap::{FileStamp, MapError, open_regular};

/// A folder of entries that together keep to a limit. Files in it that are not the store's are left alone.
#[derive(Clone, Debug)]
pub struct PackedStore {
    folder: PathBuf,
    limit: u64,
}

/// An entry as it lies in the folder.
#[derive(Debug)]
pub struct StoredEntry {
    /// Its key.
    pub key: PackedKey,
    /// Its path.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was last opened, or written.
    pub used: SystemTime,
    /// What it says of itself, or why it cannot be read.
    pub header: Result<PackedHeader, PackedError>,
}

/// What is in the folder.
#[derive(Debug)]
pub struct Contents {
    /// All entries, the one used last first.
    pub entries: Vec<StoredEntry>,
    /// Bytes of entries that are being written, or were never finished.
    pub unfinished_bytes: u64,
    /// Paths of whatever is not the store's, which it never touches.
    pub foreign: Vec<PathBuf>,
}

/// What was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RemovedFiles {
    /// Entries, and pieces of entries that were never finished.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl RemovedFiles {
    fn add(&mut self, path: &Path, bytes: u64) -> Result<(), PackedError> {
        if remove_file(path)? {
            self.files += 1;
            self.bytes += bytes;
        }
        Ok(())
    }
}

impl PackedStore {
    /// The entries in `folder`, of at most `limit` bytes together. The folder is made when the first one is written.
    pub fn new(folder: PathBuf, limit: u64) -> PackedStore {
        PackedStore { folder, limit }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the entry of `key` is, or would be.
    pub fn path(&self, key: PackedKey) -> PathBuf {
        self.folder.join(folder::entry_name(key))
    }

    fn mark_path(&self, key: PackedKey) -> PathBuf {
        self.folder.join(folder::mark_name(key))
    }

    /// Opens the entry of `key`; `None` where no file has its name. It counts as used now. All of it is compared with its
    /// checksums first, unless that was done since the machine was started and nobody wrote to it since; `progress` gets
    /// the bytes compared, and of all.
    ///
    /// # Errors
    /// [`PackedError::Header`] and [`PackedError::Version`] for a file that is no entry or not this one,
    /// [`PackedError::Damaged`] and [`PackedError::Gap`] for one whose bytes are not what was written,
    /// [`PackedError::Changing`], [`PackedError::Map`].
    pub fn open(&self, key: PackedKey, progress: &mut dyn FnMut(u64, u64)) -> Result<Option<PackedEntry>, PackedError> {
        let path = self.path(key);
        // A link may lead out of the folder, and a pipe nowhere.
        if !fs::symlink_metadata(&path).is_ok_and(|data| data.is_file()) {
            return Ok(None);
        }
        PackedEntry::open(&path, self.mark_path(key), key, progress).map(Some)
    }

    /// What is in the folder. One that does not exist has nothing.
    ///
    /// # Errors
    /// [`PackedError::Io`] for a folder that cannot be read.
    pub fn list(&self) -> Result<Contents, PackedError> {
        let folder = StoreFolder::read(&self.folder)?;
        let listed = |(key, item): (PackedKey, StoreFile)| {
            let header = read_header(&item.path);
            StoredEntry { key, path: item.path, bytes: item.bytes, used: item.modified, header }
        };
        let entries = folder.entries().into_iter().map(listed).collect();
        let unfinished_bytes = folder.unfinished().map(|(_, item)| item.bytes).sum();
        Ok(Contents { entries, unfinished_bytes, foreign: folder.foreign })
    }

    /// Removes the file that has the name of the entry of `key`. Who has it mapped keeps it until the mapping ends.
    ///
    /// # Errors
    /// [`PackedError::Io`]; none for an entry that is not there.
    pub fn remove(&self, key: PackedKey) -> Result<RemovedFiles, PackedError> {
        let (path, mut removed) = (self.path(key), RemovedFiles::default());
        let bytes = fs::symlink_metadata(&path).map_or(0, |data| data.len());
        removed.add(&path, bytes)?;
        if mark::is_ours(&self.mark_path(key)) {
            remove_file(&self.mark_path(key))?;
        }
        Ok(removed)
    }

    /// Removes all entries with their marks, what writers left behind that were ended, and the lock. What is being
    /// written now stays, and so does everything that is not the store's.
    ///
    /// # Errors
    /// [`PackedError::Io`] at the first file that cannot be removed, [`PackedError::Busy`].
    pub fn clear(&self) -> Result<RemovedFiles, PackedError> {
        let mut removed = RemovedFiles::default();
        if StoreFolder::read(&self.folder)?.ours.is_empty() {
            return Ok(removed);
        }
        let _lock = self.lock()?;
        for (key, _) in StoreFolder::read(&self.folder)?.entries() {
            let one = self.remove(key)?;
            removed.files += one.files;
            removed.bytes += one.bytes;
        }
        self.sweep(&mut removed)?;
        for item in StoreFolder::read(&self.folder)?.ours {
            if matches!(item.kind, StoreFileKind::Mark(_) | StoreFileKind::Lock) {
                remove_file(&item.path)?;
            }
        }
        Ok(removed)
    }

    /// Begins to write an entry. Room is made before: entries used longest ago are removed until all together, with the
    /// new one, keep to the limit.
    ///
    /// # Errors
    /// [`PackedError::Busy`] when another process writes the same entry, [`PackedError::OverLimit`],
    /// [`PackedError::DiskFull`], [`PackedError::Foreign`] where its name is taken, [`PackedError::Io`] (a folder that
    /// cannot be written to, say).
    pub fn begin(&self, new: NewEntry) -> Result<PackedWriter, PackedError> {
        let key = new.key;
        fs::create_dir_all(&self.folder).map_err(PackedError::io("create the folder", &self.folder))?;
        let _lock = self.lock()?;
        self.sweep(&mut RemovedFiles::default())?;
        if let Some((_, item)) = StoreFolder::read(&self.folder)?.unfinished().find(|(of, _)| *of == key) {
            return Err(PackedError::Busy { path: item.path.clone() });
        }
        let target = self.path(key);
        if fs::symlink_metadata(&target).is_ok_and(|data| !data.is_file()) {
            return Err(PackedError::Foreign { path: target });
        }
        let header = new.header();
        self.evict_for(header.file_bytes())?;
        let unique = |n: u32| self.folder.join(folder::unfinished_name(key, n));
        let (mut n, mut temporary) = (0, unique(0));
        let file = loop {
            match File::options().create_new(true).write(true).open(&temporary) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && n < 100 => {
                    n += 1;
                    temporary = unique(n);
                }
                file => break file.map_err(PackedError::io("create", &temporary))?,
            }
        };
        PackedWriter::start(file, temporary, target, header)
    }

    /// Removes entries used longest ago until `wanted` more bytes keep to the limit, and checks that the disk has them.
    fn evict_for(&self, wanted: u64) -> Result<(), PackedError> {
        if wanted > self.limit {
            return Err(PackedError::OverLimit { folder: self.folder.clone(), wanted, limit: self.limit });
        }
        let mut entries = StoreFolder::read(&self.folder)?.entries();
        let mut held: u64 = entries.iter().map(|(_, item)| item.bytes).sum();
        while held > self.limit - wanted
            && let Some((key, item)) = entries.pop()
        {
            self.remove(key)?;
            held -= item.bytes;
        }
        let free = fs4::available_space(&self.folder).map_err(PackedError::io("ask for the room on", &self.folder))?;
        if free < wanted.saturating_add(limits::KEEP_FREE) {
            let (folder, reserve) = (self.folder.clone(), limits::KEEP_FREE);
            return Err(PackedError::DiskFull { folder, wanted, reserve, free });
        }
        Ok(())
    }

    /// Removes what writers left behind that were ended: what no living process holds the lock of.
    fn sweep(&self, removed: &mut RemovedFiles) -> Result<(), PackedError> {
        for (_, item) in StoreFolder::read(&self.folder)?.unfinished() {
            let Ok(file) = File::options().read(true).write(true).open(&item.path) else { continue };
            if FileExt::try_lock(&file).is_ok() {
                removed.add(&item.path, item.bytes)?;
            }
        }
        Ok(())
    }

    /// The lock of the folder, held until the file is dropped.
    fn lock(&self) -> Result<File, PackedError> {
        let path = self.folder.join(folder::LOCK);
        for _ in 0..limits::LOCK_TRIES {
            let file = open_lock(&path)?;
            if FileExt::try_lock(&file).is_ok() {
                let held = FileStamp::of(&file.metadata().map_err(PackedError::io("lock", &path))?).file;
                // Clearing the folder removes the lock too: who then still locks it holds nothing.
                if FileStamp::read(&path).is_ok_and(|now| now.file == held) {
                    return Ok(file);
                }
            }
            std::thread::sleep(limits::LOCK_WAIT);
        }
        Err(PackedError::Busy { path })
    }
}

/// Opens the lock, or makes it; nothing else that has its name is opened.
fn open_lock(path: &Path) -> Result<File, PackedError> {
    match File::options().create_new(true).write(true).open(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(PackedError::io("create", path)),
    }
    if !fs::symlink_metadata(path).is_ok_and(|data| data.is_file()) {
        return Err(PackedError::Foreign { path: path.to_path_buf() });
    }
    File::options().read(true).write(true).open(path).map_err(PackedError::io("open", path))
}

/// Removes a file; whether it was there.
fn remove_file(path: &Path) -> Result<bool, PackedError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        done => done.map(|()| true).map_err(PackedError::io("remove", path)),
    }
}

/// Reads the head of the entry at `path`, and nothing else of it.
fn read_header(path: &Path) -> Result<PackedHeader, PackedError> {
    let error = |source| PackedError::Io { doing: "read", path: path.to_path_buf(), source };
    let file = open_regular(path).map_err(MapError::from)?;
    let bytes = file.metadata().map_err(error)?.len();
    let mut head = Vec::new();
    (&file).take(PREFIX as u64).read_to_end(&mut head).map_err(error)?;
    let name = path.display().to_string();
    if let Some(length) = PackedHeader::description_bytes(&head) {
        (&file).take(length).read_to_end(&mut head).map_err(error)?;
    }
    PackedHeader::parse(&head, bytes, &name)
}
