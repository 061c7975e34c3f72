//! Writing beyond a limit on the size of files, in a process of its own, which would end by the signal
//! and is this program again: it has no other tests.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // a test may stop at anything

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};
use yirage_process::file_size_limits_are_errors;

#[test]
fn files_beyond_the_limit_are_errors() {
    let script = "ulimit -f 8; exec \"$0\" --exact child_writes_beyond_the_limit --ignored";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(std::env::current_exe().unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().unwrap().success());
}

#[test]
#[ignore = "run by files_beyond_the_limit_are_errors"]
fn child_writes_beyond_the_limit() {
    file_size_limits_are_errors();
    let mut file = tempfile::tempfile().unwrap();
    let error = file.write_all(&vec![1; 1 << 20]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
}
