//! Writing an entry, piece by piece, so that it never appears before it is whole.

use crate::PackedError;
use crate::blocks::BlockWriter;
use crate::header::{MAGIC, PackedHeader};
use crate::key::PackedKey;
use crate::limits;
use crate::source::SourceFile;
use crate::sum::range_sum;
use fs4::FileExt;
use std::fs::{self, File};
use std::path::PathBuf;

/// What an entry will be.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// Its key.
    pub key: PackedKey,
    /// What its images are for, in the words of the device.
    pub device: String,
    /// The files it is made from.
    pub source: Vec<SourceFile>,
    /// Name and size of each image, in the order they will come.
    pub images: Vec<(String, u64)>,
}

impl NewEntry {
    pub(crate) fn header(self) -> PackedHeader {
        PackedHeader::plan(self.key, self.device, self.source, self.images)
    }
}

/// Writes an entry under another name. Dropped before [`PackedWriter::finish`], it leaves nothing behind; a process that is
/// ended leaves a file that nobody takes for an entry and the next writer removes.
#[derive(Debug)]
pub struct PackedWriter {
    file: BlockWriter,
    temporary: PathBuf,
    target: PathBuf,
    header: PackedHeader,
    image: usize,
    /// Bytes of the current image that are written.
    at: u64,
    unsynced: u64,
    finished: bool,
}

impl PackedWriter {
    /// Locks the new file, says in it whose it is, and asks for its room on the disk.
    pub(crate) fn start(
        file: File,
        temporary: PathBuf,
        target: PathBuf,
        header: PackedHeader,
    ) -> Result<PackedWriter, PackedError> {
        let (image, at, unsynced, finished) = (0, 0, 0, false);
        let file = BlockWriter::new(file);
        let mut writer = PackedWriter { file, temporary, target, header, image, at, unsynced, finished };
        let lock = FileExt::try_lock(writer.file.file());
        lock.map_err(|e| PackedError::io("lock", &writer.temporary)(e.into()))?;
        writer.file.begin(&MAGIC).map_err(PackedError::io("write", &writer.temporary))?;
        let room = FileExt::allocate(writer.file.file(), writer.header.file_bytes());
        room.map_err(PackedError::io("ask for room for", &writer.temporary))?;
        Ok(writer)
    }

    /// Which image is wanted next, and from which of its bytes on: the place, counted from 0 in the order announced.
    /// `None` when all are written.
    pub fn wants(&mut self) -> Option<(usize, u64)> {
        while self.header.images.get(self.image).is_some_and(|image| self.at == image.bytes) {
            (self.image, self.at) = (self.image + 1, 0);
        }
        (self.image < self.header.images.len()).then_some((self.image, self.at))
    }

    /// Writes the next range of the image that [`PackedWriter::wants`] names, given the whole image.
    ///
    /// # Errors
    /// [`PackedError::Unannounced`] for an image of another size, [`PackedError::Io`].
    pub fn push(&mut self, image: &[u8]) -> Result<u64, PackedError> {
        let Some((index, at)) = self.wants() else { return Ok(0) };
        let facts = &mut self.header.images[index];
        if facts.bytes != image.len() as u64 {
            let (path, bytes) = (self.temporary.clone(), image.len());
            return Err(PackedError::Unannounced { path, image: index, bytes, at });
        }
        let end = facts.bytes.min(at + self.header.range_bytes);
        let piece = &image[at as usize..end as usize];
        facts.sums[(at / self.header.range_bytes) as usize] = range_sum(piece);
        self.file.put(facts.offset + at, piece).map_err(PackedError::io("write", &self.temporary))?;
        self.at = end;
        self.unsynced += end - at;
        if self.unsynced >= limits::SYNC_BYTES {
            // Little by little, so that the end of the work is near when the last piece is written.
            self.file.file().sync_data().map_err(PackedError::io("sync", &self.temporary))?;
            self.unsynced = 0;
        }
        Ok(end - at)
    }

    /// Writes the head, brings all of it to the disk, and gives the entry its name.
    ///
    /// # Errors
    /// [`PackedError::SourceChanged`] when a model file is not what it was when it was opened, [`PackedError::Io`].
    pub fn finish(mut self) -> Result<PathBuf, PackedError> {
        if let Some((image, at)) = self.wants() {
            return Err(PackedError::Unannounced { path: self.temporary.clone(), image, bytes: 0, at });
        }
        if let Some(changed) = self.header.source.iter().find(|file| !file.is_unchanged()) {
            return Err(PackedError::SourceChanged { path: changed.path.clone() });
        }
        let head = self.header.print();
        self.file.finish(&head).map_err(PackedError::io("write", &self.temporary))?;
        fs::rename(&self.temporary, &self.target).map_err(PackedError::io("rename", &self.temporary))?;
        self.finished = true;
        // The name is on the disk when the folder is; systems that cannot sync a folder do so by themselves.
        if let Some(folder) = self.target.parent() {
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(self.target.clone())
    }
}

impl Drop for PackedWriter {
    fn drop(&mut self) {
        if !self.finished {
            // The next writer removes what stays here.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
