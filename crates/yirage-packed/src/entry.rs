//! An entry that is open.

use crate::PackedError;
use crate::check::check;
use crate::header::PackedHeader;
use crate::key::PackedKey;
use crate::mark::Mark;
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use yirage_mmap::{FileStamp, MapError, MappedFile, open_regular};

/// Times that an entry is compared anew because it changed while it was compared.
const TRIES: usize = 3;

/// A whole entry, mapped. All of its bytes are what was written: they were compared now, or since the machine was
/// started and not written to since.
#[derive(Debug)]
pub struct PackedEntry {
    map: Arc<MappedFile>,
    file: File,
    /// What the file was when it was compared.
    stamp: FileStamp,
    header: PackedHeader,
    index: HashMap<String, usize>,
    unmarked: Option<PackedError>,
}

impl PackedEntry {
    /// Opens the entry at `path`, which must be the one of `key`; `mark` is where its mark lies.
    pub(crate) fn open(
        path: &Path,
        mark: PathBuf,
        key: PackedKey,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<PackedEntry, PackedError> {
        let file = open_regular(path).map_err(MapError::from)?;
        let map = Arc::new(MappedFile::open(path)?);
        let seen = map.stamp();
        let name = path.display().to_string();
        let header = PackedHeader::parse(&map, map.len() as u64, &name);
        map.intact()?;
        let header = header?;
        if header.key != key.to_string() {
            let (expected, found) = (key.to_string(), header.key);
            return Err(PackedError::Header { path: name, field: "key".into(), expected, found });
        }
        let mark = Mark::new(mark, &seen, PackedHeader::sum_of_head(&map));
        let index = header.images.iter().enumerate().map(|(i, image)| (image.name.clone(), i)).collect();
        let mut entry = PackedEntry { map, file, stamp: seen, header, index, unmarked: None };
        entry.map.will_need();
        if mark.vouches() {
            entry.confirm()?;
            mark.touch();
        } else {
            let began = SystemTime::now();
            check(&entry.map, &entry.header, progress)?;
            entry.confirm()?;
            // What was compared twice because it changed meanwhile is another file than the mark's.
            entry.unmarked = if entry.stamp == entry.map.stamp() { mark.set(began).err() } else { None };
        }
        Ok(entry)
    }

    /// What it says of itself.
    pub fn header(&self) -> &PackedHeader {
        &self.header
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// The file, mapped, and the bytes of an image in it; `None` for a name it does not have.
    pub fn image(&self, name: &str) -> Option<(Arc<MappedFile>, Range<usize>)> {
        let image = &self.header.images[*self.index.get(name)?];
        // The whole file is mapped, so its offsets are addresses' offsets.
        Some((Arc::clone(&self.map), image.offset as usize..(image.offset + image.bytes) as usize))
    }

    /// Why the next start has to compare all of it again, where that cannot be noted beside it.
    pub fn unmarked(&self) -> Option<&PackedError> {
        self.unmarked.as_ref()
    }

    /// Whether its bytes still are what was written, also where somebody did something to the file since the last call:
    /// then all of it is compared again. Else this is one call of the system.
    ///
    /// # Errors
    /// [`PackedError::Damaged`], [`PackedError::Gap`], [`PackedError::Header`] and [`PackedError::Map`]: what was read of
    /// it since the last call may be wrong. [`PackedError::Changing`] while somebody keeps writing to it.
    pub fn confirm(&mut self) -> Result<(), PackedError> {
        for _ in 0..TRIES {
            self.map.intact()?;
            let data = self.file.metadata().map_err(PackedError::io("ask for the state of", self.path()))?;
            let now = FileStamp::of(&data);
            if now == self.stamp {
                return Ok(());
            }
            if now.bytes != self.map.len() as u64 {
                let (expected, found) = (self.map.len().to_string(), now.bytes.to_string());
                let (path, field) = (self.path().display().to_string(), "length of the file".into());
                return Err(PackedError::Header { path, field, expected, found });
            }
            check(&self.map, &self.header, &mut |_, _| ())?;
            self.stamp = now;
        }
        Err(PackedError::Changing { path: self.path().to_path_buf() })
    }
}
