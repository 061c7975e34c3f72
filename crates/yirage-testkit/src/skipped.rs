//! What a test leaves out because this machine lacks it. It is said at the end of the run, by the test `what_was_skipped`.
//!
//! Only for what depends on the machine and is known when the test runs, such as a processor's instruction sets, in a test
//! that does something all the same. A test that would do nothing is `#[ignore]`d with its reason.

use crate::fixtures;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// Says that the test that calls this leaves out `what`, and why.
pub fn note(what: &str, why: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {what}: {why}\n", thread.name().unwrap_or("?"));
    fs::create_dir_all(fixtures::root()).unwrap();
    // One write of one line: other tests write at the same time.
    fs::File::options().create(true).append(true).open(file()).unwrap().write_all(line.as_bytes()).unwrap();
}

/// What was noted by the tests of this run, each line once; and forgets it.
#[must_use]
pub fn take() -> Vec<String> {
    let noted = fs::read_to_string(file()).unwrap_or_default();
    let _ = fs::remove_file(file());
    let mut lines: Vec<String> = noted.lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// The tests of one run have one parent.
fn file() -> PathBuf {
    #[cfg(unix)]
    let run = std::os::unix::process::parent_id();
    #[cfg(not(unix))]
    let run = 0;
    fixtures::root().join(format!("skipped-{run}"))
}
