//! Signals that files can raise, for real: each in a child process, which would end by them
//! and is this program again: it has no other tests.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use yirage_mmap::{MapError, MappedFile, guard_mappings};

const BYTES: usize = 3 << 20;
const FOLDER: &str = "YIRAGE_TEST_GUARD_FOLDER";

/// Runs a test of this file as a process of its own, in a folder of its own, behind `shell`.
fn child(test: &str, shell: &str) -> ExitStatus {
    let folder = std::env::temp_dir().join(format!("yirage-guard-{}-{test}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let script = format!("{shell} exec \"$0\" --exact {test} --ignored --nocapture");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(std::env::current_exe().unwrap()).env(FOLDER, &folder);
    let status = command.output().unwrap().status;
    fs::remove_dir_all(&folder).unwrap();
    status
}

fn folder() -> PathBuf {
    std::env::var_os(FOLDER).expect("this test is run by another one").into()
}

fn write(path: &Path) -> MappedFile {
    fs::write(path, vec![7; BYTES]).unwrap();
    MappedFile::open(path).unwrap()
}

fn cut(file: &MappedFile, bytes: u64) {
    File::options().write(true).open(file.path()).unwrap().set_len(bytes).unwrap();
}

fn sum(file: &MappedFile) -> usize {
    file.iter().map(|&b| usize::from(b)).sum()
}

#[test]
fn a_file_that_is_cut_off_is_lost_and_others_are_not() {
    assert!(child("child_reads_files_that_are_cut_off", "").success());
}

#[test]
#[ignore = "run by a_file_that_is_cut_off_is_lost_and_others_are_not"]
fn child_reads_files_that_are_cut_off() {
    guard_mappings().unwrap();
    guard_mappings().unwrap();
    let (whole, cut_off) = (write(&folder().join("whole")), write(&folder().join("cut")));
    cut_off.intact().unwrap();
    cut(&cut_off, 100_000);
    // What is still there reads as it was; behind it are zeros, from the next page on.
    assert_eq!(cut_off[99_999], 7);
    cut_off.intact().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!((100_000 * 7..110_000 * 7).contains(&sum(&cut_off))));
        }
    });
    let error = cut_off.intact().unwrap_err();
    assert!(matches!(&error, MapError::Lost { path } if path == cut_off.path()), "{error}");
    assert!(error.to_string().contains("cut off while in use"), "{error}");
    assert_eq!(sum(&whole), 7 * BYTES);
    whole.intact().unwrap();
    // Whole again, it stays lost: what was read of it was wrong.
    cut(&cut_off, BYTES as u64);
    assert!(cut_off.intact().is_err());
    // Its place in the table is another file's afterwards, and clean.
    drop(cut_off);
    for i in 0..5000 {
        let next = MappedFile::open(whole.path()).unwrap();
        next.intact().unwrap_or_else(|e| panic!("{i}: {e}"));
    }
}

#[test]
fn without_being_asked_nothing_changes() {
    assert_eq!(child("child_reads_without_a_guard", "").signal(), Some(libc::SIGBUS));
}

#[test]
#[ignore = "run by without_being_asked_nothing_changes"]
fn child_reads_without_a_guard() {
    let file = write(&folder().join("cut"));
    cut(&file, 0);
    sum(&file);
}

#[test]
fn the_same_signal_from_elsewhere_ends_the_process() {
    assert_eq!(child("child_is_sent_the_signal", "").signal(), Some(libc::SIGBUS));
}

#[test]
#[ignore = "run by the_same_signal_from_elsewhere_ends_the_process"]
fn child_is_sent_the_signal() {
    let _file = write(&folder().join("file"));
    guard_mappings().unwrap();
    // The first one meets what the standard library does with it, which is to ask for the system's own action. Each is
    // sent to this very thread, which has met it when the call returns: two that wait for a process together are one.
    for _ in 0..2 {
        // SAFETY: the call takes a number and touches no memory of ours.
        let sent = unsafe { libc::raise(libc::SIGBUS) };
        println!("still here: {sent}");
    }
}

#[test]
fn a_full_table_is_an_error() {
    assert!(child("child_maps_very_many", "").success());
}

#[test]
#[ignore = "run by a_full_table_is_an_error"]
fn child_maps_very_many() {
    let first = write(&folder().join("file"));
    let mut maps = Vec::new();
    let error = loop {
        match MappedFile::open(first.path()) {
            Ok(map) => maps.push(map),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, MapError::TooMany { .. }) && maps.len() == 4095, "{error}: {}", maps.len());
    maps.pop();
    assert!(MappedFile::open(first.path()).is_ok());
}
