//! A folder of its own for a test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Removed when dropped.
#[derive(Debug)]
pub struct ScratchFolder(pub PathBuf);

impl ScratchFolder {
    /// An empty folder; `test` says whose, to people who look.
    #[must_use]
    pub fn new(test: &str) -> ScratchFolder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("yirage-{}-{count}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        ScratchFolder(folder)
    }

    /// A file in it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A copy of a file in it, under the same name.
    pub fn copy(&self, file: &Path) -> PathBuf {
        self.write(file.file_name().unwrap().to_str().unwrap(), &std::fs::read(file).unwrap())
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
