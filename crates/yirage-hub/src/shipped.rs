//! Models that a program carries within itself: they need no network, and are written out where they are first wanted.

use crate::HubError;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A model within a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shipped {
    /// The short name.
    pub name: &'static str,
    /// What it is and what not, in one line.
    pub summary: &'static str,
    /// Under which terms its weights are given.
    pub licence: &'static str,
    /// The file's name.
    pub file: &'static str,
    /// The file.
    pub bytes: &'static [u8],
}

impl Shipped {
    /// The file in `folder`, written if it is not there as a whole. It appears by renaming: nobody reads half of one.
    ///
    /// # Errors
    /// [`HubError::Io`].
    pub(crate) fn unpack(&self, folder: &Path) -> Result<PathBuf, HubError> {
        let path = folder.join(self.file);
        if fs::read(&path).is_ok_and(|there| there == self.bytes) {
            return Ok(path);
        }
        fs::create_dir_all(folder).map_err(HubError::io("making a folder for a model", folder))?;
        let part = folder.join(format!("{}.{}.part", self.file, std::process::id()));
        let written = fs::File::create(&part).and_then(|mut file| file.write_all(self.bytes));
        let written = written.and_then(|()| fs::rename(&part, &path));
        if written.is_err() {
            // What is left of it is of no use; that it cannot be removed says the error as well.
            let _ = fs::remove_file(&part);
        }
        written.map_err(HubError::io("writing a model", &path))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: Shipped = Shipped { name: "m", summary: "a test", licence: "MIT", file: "m.gguf", bytes: b"GGUF..." };

    #[test]
    fn a_file_is_written_once_and_again_where_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        let path = MODEL.unpack(&inner).unwrap();
        assert_eq!(fs::read(&path).unwrap(), MODEL.bytes);
        fs::write(&path, b"GGUF...,").unwrap();
        assert_eq!(fs::read(MODEL.unpack(&inner).unwrap()).unwrap(), MODEL.bytes);
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1, "no part is left");
    }

    #[test]
    fn a_folder_that_cannot_be_is_an_error_with_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        let message = MODEL.unpack(&file).unwrap_err().to_string();
        assert!(message.contains(file.to_str().unwrap()), "{message}");
    }
}
