//! A file that is written beside its place, and put there when it is whole.

use crate::error::ConvertError;
use std::io::{BufWriter, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// A file on its way. Nothing is left of it where it is dropped.
pub(crate) struct AtomicFile<'a> {
    path: &'a Path,
    force: bool,
    out: BufWriter<NamedTempFile>,
    written: u64,
}

impl<'a> AtomicFile<'a> {
    /// Begins the file that will be at `path`; one that is there is overwritten by `force` alone.
    pub(crate) fn create(path: &'a Path, force: bool) -> Result<AtomicFile<'a>, ConvertError> {
        if !force && path.exists() {
            return Err(ConvertError::Exists { path: path.to_owned() });
        }
        // Another file would take the place of a device or a pipe.
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "expected a regular file or none");
            return Err(ConvertError::Write { path: path.to_owned(), source });
        }
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = NamedTempFile::new_in(folder);
        let file = file.map_err(|source| ConvertError::Write { path: path.to_owned(), source })?;
        Ok(AtomicFile { path, force, out: BufWriter::new(file), written: 0 })
    }

    fn error(&self, source: std::io::Error) -> ConvertError {
        ConvertError::Write { path: self.path.to_owned(), source }
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        self.out.write_all(bytes).map_err(|e| self.error(e))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Appends zeros up to a multiple of `alignment`.
    pub(crate) fn pad(&mut self, alignment: u64) -> Result<(), ConvertError> {
        let padding = self.written.next_multiple_of(alignment) - self.written;
        self.write(&vec![0; padding as usize])
    }

    /// Where what was written so far can be read.
    pub(crate) fn written_so_far(&mut self) -> Result<&Path, ConvertError> {
        self.out.flush().map_err(|e| self.error(e))?;
        Ok(self.out.get_ref().path())
    }

    /// Puts the file in its place, and gives its bytes.
    pub(crate) fn finish(mut self) -> Result<u64, ConvertError> {
        self.written_so_far()?;
        let (path, force, written) = (self.path, self.force, self.written);
        let failed = |source| ConvertError::Write { path: path.to_owned(), source };
        let file = self.out.into_inner().map_err(|e| failed(e.into_error()))?;
        let kept = if force { file.persist(path) } else { file.persist_noclobber(path) };
        kept.map_err(|e| failed(e.error))?;
        Ok(written)
    }
}
