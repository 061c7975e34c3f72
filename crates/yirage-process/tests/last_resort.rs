//! An abort where memory has run out, in processes of their own, which would end by the signal and are this program again: it
//! has no other tests.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test may stop at anything

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use yirage_process::last_resort;

const CODE: u8 = 4;

/// How the test of that name ends as a process of its own, and what it says.
fn ended(child: &str) -> (ExitStatus, String) {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 400000; exec \"$0\" --exact \"$1\" --ignored --nocapture"]);
    let output = command.arg(std::env::current_exe().unwrap()).arg(child).output().unwrap();
    (output.status, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn an_abort_without_memory_is_the_code_and_any_other_stays() {
    let (status, told) = ended("child_aborts_without_memory");
    assert_eq!(status.code(), Some(CODE.into()), "{status}: {told}");
    assert!(told.contains("memory ran out"), "{told}");
    let (status, told) = ended("child_aborts");
    assert_eq!(status.signal(), Some(libc::SIGABRT), "{status}: {told}");
    assert!(!told.contains("memory ran out"), "{told}");
}

/// Takes all address space that the process may still have, past every allocator, as the C library does.
fn take_all() {
    for bytes in [1 << 24, 1 << 20, 1 << 16, 1 << 12] {
        let take = || {
            let kind = libc::MAP_PRIVATE | libc::MAP_ANON;
            // SAFETY: a new mapping, wherever there is room for it, is nobody's memory, and nobody uses it.
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, kind, -1, 0) }
        };
        while take() != libc::MAP_FAILED {}
    }
}

#[test]
#[ignore = "run by an_abort_without_memory_is_the_code_and_any_other_stays"]
fn child_aborts_without_memory() {
    last_resort::install(CODE);
    take_all();
    std::process::abort();
}

#[test]
#[ignore = "run by an_abort_without_memory_is_the_code_and_any_other_stays"]
fn child_aborts() {
    last_resort::install(CODE);
    std::process::abort();
}
