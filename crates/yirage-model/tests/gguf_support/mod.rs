//! Shared by the container tests: a byte-level GGUF writer that can also write lies, and a count of allocated bytes.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::print_stderr)]

pub mod alloc;
pub mod writer;

use std::path::PathBuf;

/// The folder of a fuzz target's seeds.
pub fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Every file of a corpus, sorted by name.
pub fn corpus_files(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(corpus(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no seeds in {}", corpus(target).display());
    files
}

/// A file that lies beside the checkout, or `None` with a loud line.
pub fn shared(path: &str) -> Option<PathBuf> {
    let full = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    if !full.exists() {
        eprintln!("SKIPPED: {} is absent", full.display());
        return None;
    }
    Some(full)
}

/// A file of the folder of large models, or `None` with a loud line.
pub fn big_model(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("YIRAGE_MODELS") else {
        eprintln!("SKIPPED: YIRAGE_MODELS is not set, so there is no {name}");
        return None;
    };
    let full = PathBuf::from(folder).join(name);
    if !full.exists() {
        eprintln!("SKIPPED: {} is absent", full.display());
        return None;
    }
    Some(full)
}

/// A folder of its own for a test, removed when dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(test: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("yirage-model-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
