//! Mapping real files: content, release, and what is refused. A program of its own: a test looks at the resident
//! memory of all of it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use yirage_mmap::{FileError, FileKind, MapError, MappedFile};

/// A file in a folder of its own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str, content: &[u8]) -> Scratch {
        let dir = std::env::temp_dir().join(format!("yirage-mmap-{}-{test}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("file"), content).unwrap();
        Scratch(dir)
    }
    fn file(&self) -> PathBuf {
        self.0.join("file")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

#[test]
fn content_and_length_are_the_files() {
    for len in [0, 1, 4095, 4096, 4097, 300_000] {
        let content = pattern(len);
        let s = Scratch::new(&format!("content-{len}"), &content);
        let f = MappedFile::open(s.file()).unwrap();
        assert_eq!(f.len(), len);
        assert!(f.bytes() == content);
        assert_eq!(f.path(), s.file());
    }
}

#[test]
fn released_pages_read_the_same_again() {
    let content = pattern(1_000_003);
    let s = Scratch::new("release", &content);
    let f = MappedFile::open(s.file()).unwrap();
    assert!(f.bytes() == content);
    for range in [0..f.len(), 5..70_000, 900_000..usize::MAX, 12..13, 2_000_000..3_000_000] {
        let given = f.release(range.clone());
        assert!(given <= range.len());
        assert!(f.bytes() == content);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn release_lowers_resident_memory() {
    // Resident pages of mapped files, in pages: the third field of statm.
    fn shared_pages() -> usize {
        let statm = fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(2).unwrap().parse().unwrap()
    }
    let content = pattern(32 << 20);
    let s = Scratch::new("rss", &content);
    let f = MappedFile::open(s.file()).unwrap();
    assert!(f.bytes() == content);
    let touched = shared_pages();
    assert_eq!(f.release(0..f.len()), f.len());
    let released = shared_pages();
    let pages = f.len() / 65536;
    assert!(released + pages <= touched, "{touched} pages before, {released} after releasing at least {pages}");
}

#[test]
fn a_replaced_file_keeps_its_old_bytes() {
    let content = pattern(10_000);
    let s = Scratch::new("replace", &content);
    let f = MappedFile::open(s.file()).unwrap();
    fs::write(s.0.join("new"), b"other").unwrap();
    fs::rename(s.0.join("new"), s.file()).unwrap();
    assert!(f.bytes() == content);
}

#[test]
fn missing_files_and_folders_are_named() {
    let s = Scratch::new("errors", b"");
    let missing = MappedFile::open(s.0.join("absent")).unwrap_err();
    assert!(matches!(missing, MapError::File(FileError::Open { .. })));
    assert!(missing.to_string().contains("absent"));
    let folder = MappedFile::open(&s.0).unwrap_err();
    assert!(matches!(folder, MapError::File(FileError::NotAFile { kind: FileKind::Folder, .. })));
    assert!(folder.to_string().contains("regular file"));
}
