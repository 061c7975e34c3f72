//! A standard output that is closed is told from one that is open, of whatever kind, in processes of their own,
//! which are this program again: it has no other tests.
#![cfg(all(unix, not(target_vendor = "apple")))]
#![allow(clippy::unwrap_used)] // a test may stop at anything

use std::process::{Command, Stdio};

/// Runs the test below behind a redirection of a shell; it fails where standard output was closed.
fn was_open(redirection: &str) -> bool {
    let script = format!("exec \"$0\" --exact child_is_open --ignored {redirection}");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(std::env::current_exe().unwrap());
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn only_a_closed_output_is_closed() {
    for open in ["", ">/dev/null", "<>/dev/null >&0"] {
        assert!(was_open(open), "{open:?}");
    }
    assert!(!was_open(">&-"));
}

#[test]
#[ignore = "run by only_a_closed_output_is_closed"]
fn child_is_open() {
    assert!(!yirage_process::standard_output_was_closed());
}
