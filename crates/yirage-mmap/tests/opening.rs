//! What is opened, what is refused, and that neither waits nor reads too much.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use yirage_mmap::{
    FileError, FileKind, MapError, MappedFile, is_there, read_bytes, read_bytes_if_there, read_piped_text, read_text,
    read_text_if_there,
};

/// A folder of its own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("yirage-open-{}-{test}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    fn with(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    fn link(&self, name: &str, to: &str) -> PathBuf {
        let path = self.0.join(name);
        symlink(to, &path).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What `work` gives, which must come soon: a call that waits for a pipe's writer would wait forever.
fn soon<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(work()));
    receive.recv_timeout(Duration::from_secs(20)).expect("opening waits")
}

fn kind_of(error: &FileError) -> FileKind {
    match error {
        FileError::NotAFile { kind, .. } | FileError::NotReadable { kind, .. } => *kind,
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_no_file_is_refused_by_its_kind() {
    let s = Scratch::new("kinds");
    let socket = s.0.join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let cases = [
        (s.0.clone(), FileKind::Folder),
        (s.pipe("pipe"), FileKind::Pipe),
        (socket, FileKind::Socket),
        (s.link("zero", "/dev/zero"), FileKind::CharacterDevice),
        (PathBuf::from("/dev/null"), FileKind::CharacterDevice),
    ];
    for (path, kind) in cases {
        let at = path.clone();
        let [read, text, there, mapped] = soon(move || {
            let mapped = match MappedFile::open(&at).unwrap_err() {
                MapError::File(e) => e,
                other => panic!("{other}"),
            };
            let there = read_bytes_if_there(&at, 10).unwrap_err();
            [read_bytes(&at, 10).unwrap_err(), read_text(&at, 10).unwrap_err(), there, mapped]
        });
        for error in [read, text, there, mapped] {
            assert_eq!(kind_of(&error), kind, "{error}");
            let said = error.to_string();
            assert!(said.contains(path.to_str().unwrap()) && said.contains(&kind.to_string()), "{said}");
            assert!(said.contains("give the path of a file"), "{said}");
        }
    }
}

#[test]
fn a_limit_is_held_and_named() {
    let s = Scratch::new("limit");
    let path = s.with("ten", b"0123456789");
    assert_eq!(read_bytes(&path, 10).unwrap(), b"0123456789");
    let error = read_bytes(&path, 9).unwrap_err();
    assert!(matches!(error, FileError::TooLong { found: 10, limit: 9, .. }), "{error}");
    assert!(error.to_string().contains("10 bytes") && error.to_string().contains("limit of 9"), "{error}");
}

/// A file of `/proc` says that it has no bytes and has some: the same as one that grows after its length was asked.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_has_more_than_it_says_is_read_up_to_the_limit() {
    let path = Path::new("/proc/self/status");
    assert_eq!(fs::metadata(path).unwrap().len(), 0);
    let error = read_bytes(path, 20).unwrap_err();
    assert!(matches!(error, FileError::TooLong { found: 21, limit: 20, .. }), "{error}");
    assert!(read_text(path, 1 << 20).unwrap().starts_with("Name:"));
}

#[test]
fn a_text_that_is_none_says_where() {
    let s = Scratch::new("utf8");
    let error = read_text(&s.with("bad", b"abc\xffdef"), 100).unwrap_err();
    assert!(matches!(error, FileError::Utf8 { offset: 3, .. }) && error.to_string().contains("offset 3"), "{error}");
    assert_eq!(read_text(&s.with("good", "a\u{e9}".as_bytes()), 3).unwrap(), "a\u{e9}");
}

#[test]
fn an_absent_file_is_none_and_a_link_to_nowhere_is_not() {
    let s = Scratch::new("absent");
    let absent = s.0.join("absent");
    assert!(!is_there(&absent).unwrap());
    assert!(read_bytes_if_there(&absent, 10).unwrap().is_none() && read_text_if_there(&absent, 10).unwrap().is_none());
    let dangling = s.link("dangling", "nowhere");
    assert!(is_there(&dangling).unwrap());
    assert!(matches!(read_bytes_if_there(&dangling, 10), Err(FileError::Open { .. })));
    assert_eq!(read_text_if_there(&s.with("there", b"x"), 10).unwrap().as_deref(), Some("x"));
}

#[test]
fn a_pipe_is_read_where_the_user_may_pipe() {
    let s = Scratch::new("piped");
    for (limit, fits) in [(5, true), (4, false)] {
        // A pipe of its own: a process that another test begins just then has the last reader's end until it is another
        // program, and a writer that meets this end alone writes to nobody.
        let pipe = s.pipe(&format!("pipe-{limit}"));
        let (to, from) = (pipe.clone(), pipe.clone());
        // A reader that stops at its limit leaves the writer with a broken pipe, which is the writer's business.
        let writer = std::thread::spawn(move || {
            let _ = fs::OpenOptions::new().write(true).open(to).and_then(|mut f| f.write_all(b"hello"));
        });
        match soon(move || read_piped_text(&from, limit)) {
            Ok(text) => assert!(fits && text == "hello", "{text}"),
            Err(error) => assert!(!fits && matches!(error, FileError::TooLong { found: 5, .. }), "{error}"),
        }
        writer.join().unwrap();
    }
    assert_eq!(read_piped_text(&s.with("file", b"text"), 4).unwrap(), "text");
    for (path, kind) in [(Path::new("/dev/zero"), FileKind::CharacterDevice), (s.0.as_path(), FileKind::Folder)] {
        let error = read_piped_text(path, 10).unwrap_err();
        assert_eq!(kind_of(&error), kind);
        assert!(error.to_string().contains("- for standard input"), "{error}");
    }
}
