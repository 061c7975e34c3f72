//! The folder of entries: what is there, what is used, and what goes when there is no more room.

use crate::entry::Entry;
use crate::header::{Header, PREFIX};
use crate::key::Key;
use crate::writer::{NewEntry, Writer};
use crate::{PackedError, limits};
use fs4::FileExt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How names of entries end.
const WHOLE: &str = "packed";
/// How names of entries end that are being written, or were when their writer was ended.
const UNFINISHED: &str = "new";
/// Held while a writer makes room and begins.
const LOCK: &str = "store.lock";

/// A folder of entries that together keep to a limit. Opening one touches nothing.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    limit: u64,
}

/// An entry as it lies in the folder.
#[derive(Debug)]
pub struct Listed {
    /// Its key.
    pub key: Key,
    /// Its path.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was last opened, or written.
    pub used: SystemTime,
    /// What it says of itself, or why it cannot be read.
    pub header: Result<Header, PackedError>,
}

/// What was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// Entries, and pieces of entries that were never finished.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl Removed {
    fn add(&mut self, path: &Path, bytes: u64) -> Result<(), PackedError> {
        match fs::remove_file(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            done => done.map_err(PackedError::io("remove", path))?,
        }
        self.files += 1;
        self.bytes += bytes;
        Ok(())
    }
}

impl Store {
    /// The entries in `folder`, of at most `limit` bytes together. The folder is made when the first one is written.
    pub fn new(folder: PathBuf, limit: u64) -> Store {
        Store { folder, limit }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the entry of `key` is, or would be.
    pub fn path(&self, key: Key) -> PathBuf {
        self.folder.join(format!("{key}.{WHOLE}"))
    }

    /// Opens the entry of `key`; `None` where there is none. It counts as used now.
    ///
    /// # Errors
    /// [`PackedError::Header`] and [`PackedError::Version`] for a file that is no entry or not this one,
    /// [`PackedError::Map`].
    pub fn open(&self, key: Key) -> Result<Option<Entry>, PackedError> {
        let path = self.path(key);
        if !path.is_file() {
            return Ok(None);
        }
        let entry = Entry::open(&path, key)?;
        // A folder that cannot be written to is used all the same; its entries then go in the order they came.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Ok(Some(entry))
    }

    /// All entries, the one used last first. A folder that does not exist has none.
    ///
    /// # Errors
    /// [`PackedError::Io`] for a folder that cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, PackedError> {
        let mut listed = Vec::new();
        for (path, bytes, used) in self.files(WHOLE)? {
            let Some(key) = path.file_stem().and_then(|stem| stem.to_str()).and_then(Key::parse) else { continue };
            let header = read_header(&path);
            listed.push(Listed { key, path, bytes, used, header });
        }
        listed.sort_by(|a, b| b.used.cmp(&a.used).then(a.key.cmp(&b.key)));
        Ok(listed)
    }

    /// Bytes of entries that are being written, or were never finished.
    ///
    /// # Errors
    /// [`PackedError::Io`].
    pub fn unfinished_bytes(&self) -> Result<u64, PackedError> {
        Ok(self.files(UNFINISHED)?.iter().map(|(_, bytes, _)| bytes).sum())
    }

    /// Removes the entry of `key`. Who has it mapped keeps it until the mapping ends.
    ///
    /// # Errors
    /// [`PackedError::Io`]; none for an entry that is not there.
    pub fn remove(&self, key: Key) -> Result<Removed, PackedError> {
        let (path, mut removed) = (self.path(key), Removed::default());
        let bytes = fs::metadata(&path).map_or(0, |data| data.len());
        removed.add(&path, bytes)?;
        Ok(removed)
    }

    /// Removes all entries, and what writers left behind that were ended. What is being written now stays.
    ///
    /// # Errors
    /// [`PackedError::Io`] at the first file that cannot be removed.
    pub fn clear(&self) -> Result<Removed, PackedError> {
        let mut removed = Removed::default();
        for (path, bytes, _) in self.files(WHOLE)? {
            removed.add(&path, bytes)?;
        }
        self.sweep(&mut removed)?;
        Ok(removed)
    }

    /// Begins to write an entry. Room is made before: entries used longest ago are removed until all together, with the
    /// new one, keep to the limit.
    ///
    /// # Errors
    /// [`PackedError::Busy`] when another process writes the same entry, [`PackedError::OverLimit`],
    /// [`PackedError::DiskFull`], [`PackedError::Io`] (a folder that cannot be written to, say).
    pub fn begin(&self, new: NewEntry) -> Result<Writer, PackedError> {
        fs::create_dir_all(&self.folder).map_err(PackedError::io("create the folder", &self.folder))?;
        let path = self.folder.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(PackedError::io("open", &path))?;
        FileExt::lock(&lock).map_err(PackedError::io("lock", &path))?;
        self.sweep(&mut Removed::default())?;
        let own = format!("{}.", new.key);
        let is_same = |path: &Path| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(&own));
        if let Some((path, ..)) = self.files(UNFINISHED)?.into_iter().find(|(path, ..)| is_same(path)) {
            return Err(PackedError::Busy { path });
        }
        let target = self.path(new.key);
        let header = new.header();
        self.make_room(header.file_bytes())?;
        let unique = |n: u32| self.folder.join(format!("{}.{}-{n}.{UNFINISHED}", header.key, std::process::id()));
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
        Writer::start(file, temporary, target, header)
    }

    /// Removes entries used longest ago until `wanted` more bytes keep to the limit, and checks that the disk has them.
    fn make_room(&self, wanted: u64) -> Result<(), PackedError> {
        if wanted > self.limit {
            return Err(PackedError::OverLimit { folder: self.folder.clone(), wanted, limit: self.limit });
        }
        let mut files = self.files(WHOLE)?;
        files.sort_by_key(|file| std::cmp::Reverse(file.2));
        let mut held: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        while held > self.limit - wanted
            && let Some((path, bytes, _)) = files.pop()
        {
            Removed::default().add(&path, bytes)?;
            held -= bytes;
        }
        let free = fs4::available_space(&self.folder).map_err(PackedError::io("ask for the room on", &self.folder))?;
        if free < wanted.saturating_add(limits::KEEP_FREE) {
            let (folder, reserve) = (self.folder.clone(), limits::KEEP_FREE);
            return Err(PackedError::DiskFull { folder, wanted, reserve, free });
        }
        Ok(())
    }

    /// Removes what writers left behind that were ended: what no living process holds the lock of.
    fn sweep(&self, removed: &mut Removed) -> Result<(), PackedError> {
        for (path, bytes, _) in self.files(UNFINISHED)? {
            let Ok(file) = File::options().write(true).open(&path) else { continue };
            if FileExt::try_lock(&file).is_ok() {
                removed.add(&path, bytes)?;
            }
        }
        Ok(())
    }

    /// Path, size and last use of the files whose names end in `.end`.
    fn files(&self, end: &str) -> Result<Vec<(PathBuf, u64, SystemTime)>, PackedError> {
        let found = match fs::read_dir(&self.folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found.map_err(PackedError::io("read the folder", &self.folder))?,
        };
        let mut files = Vec::new();
        for file in found.flatten().take(limits::FILES) {
            let path = file.path();
            if path.extension().is_some_and(|e| e == end)
                && let Ok(data) = file.metadata()
                && data.is_file()
            {
                files.push((path, data.len(), data.modified().unwrap_or(SystemTime::UNIX_EPOCH)));
            }
        }
        Ok(files)
    }
}

/// Reads the head of the entry at `path`, and nothing else of it.
pub(crate) fn read_header(path: &Path) -> Result<Header, PackedError> {
    let error = |source| PackedError::Io { doing: "read", path: path.to_path_buf(), source };
    let file = File::open(path).map_err(error)?;
    let bytes = file.metadata().map_err(error)?.len();
    let mut head = Vec::new();
    (&file).take(PREFIX as u64).read_to_end(&mut head).map_err(error)?;
    let name = path.display().to_string();
    if let Some(length) = Header::description_bytes(&head) {
        (&file).take(length).read_to_end(&mut head).map_err(error)?;
    }
    Header::parse(&head, bytes, &name)
}
