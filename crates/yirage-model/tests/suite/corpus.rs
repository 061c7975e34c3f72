//! The seeds of fuzz targets, shared by the tests of containers.
#![allow(dead_code, unreachable_pub)] // each program of tests uses its part

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
