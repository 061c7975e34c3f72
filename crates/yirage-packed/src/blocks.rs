//! A file written front to back in large aligned blocks.
//!
//! The system keeps what is written in its cache of the file, in pages as large as the single writes allow, and maps it
//! to a reader in those pages until it leaves the cache. Through pages of 4 KiB a decode reads weights a fifth slower
//! than through those of 2 MiB.

use crate::limits::BLOCK_BYTES;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// The bytes that do not fill a block yet.
#[derive(Debug)]
pub(crate) struct BlockWriter {
    file: File,
    /// Bytes of the file that are written, a multiple of a block.
    written: u64,
    waiting: Vec<u8>,
}

impl BlockWriter {
    /// Begins at the first byte of `file`.
    pub(crate) fn new(file: File) -> BlockWriter {
        BlockWriter { file, written: 0, waiting: Vec::new() }
    }

    /// Writes the first bytes of the file at once. What follows them is written in blocks, and they again with it.
    pub(crate) fn begin(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.waiting.extend_from_slice(bytes);
        self.file.write_all(bytes)
    }

    /// The file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The place behind all bytes so far.
    fn end(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    /// Puts `bytes` at `place`, behind all bytes so far; zeros fill the gap.
    pub(crate) fn put(&mut self, place: u64, bytes: &[u8]) -> io::Result<()> {
        debug_assert!(place >= self.end(), "images come in the order of their places");
        while self.end() < place {
            let gap = (place - self.end()).min(BLOCK_BYTES - self.waiting.len() as u64);
            self.waiting.resize(self.waiting.len() + gap as usize, 0);
            self.write_whole()?;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = BLOCK_BYTES as usize - self.waiting.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.waiting.extend_from_slice(now);
            self.write_whole()?;
            rest = later;
        }
        Ok(())
    }

    /// Writes the block that waits if it is whole.
    fn write_whole(&mut self) -> io::Result<()> {
        if self.waiting.len() as u64 == BLOCK_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.written))?;
        self.file.write_all(&self.waiting)?;
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Writes what is left, then `head` over the first bytes, and brings all of it to the disk.
    pub(crate) fn finish(&mut self, head: &[u8]) -> io::Result<()> {
        self.write()?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(head)?;
        self.file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn bytes_lie_where_they_were_put() {
        let block = BLOCK_BYTES as usize;
        let piece = |seed: usize, len: usize| (0..len).map(|i| (i * 31 + seed * 7 + i / 251) as u8).collect::<Vec<_>>();
        for sizes in [vec![1, 5, 0, 4096], vec![block - 100, 200, 3 * block + 1], vec![block, block, 17]] {
            let mut file = BlockWriter::new(tempfile::tempfile().unwrap());
            let (mut expected, mut place) = (vec![0; 100], 100);
            for (i, &size) in sizes.iter().enumerate() {
                let bytes = piece(i, size);
                file.put(place, &bytes).unwrap();
                expected.resize(place as usize, 0);
                expected.extend(&bytes);
                place = (expected.len() as u64).next_multiple_of(64);
            }
            file.finish(b"head").unwrap();
            expected[..4].copy_from_slice(b"head");
            let mut found = Vec::new();
            file.file().seek(SeekFrom::Start(0)).unwrap();
            file.file().read_to_end(&mut found).unwrap();
            assert!(found == expected, "{sizes:?}");
        }
    }
}
