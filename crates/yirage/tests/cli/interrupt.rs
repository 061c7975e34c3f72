//! Ctrl-C during an answer, and a reader that goes away.

use crate::support::bedtime;
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// A run that would go on for very long.
fn long_run(model: &str) -> Child {
    let arguments = ["run", "--model", model, "--context", "30000", "--max-tokens", "29000", "--ignore-eos", "--quiet"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_yirage"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_answer_and_keeps_what_there_is() {
    let model = bedtime();
    let mut child = long_run(&model);
    let mut out = child.stdout.take().unwrap();
    let mut first = [0];
    out.read_exact(&mut first).unwrap();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(rest.ends_with('\n'), "the line is ended: {rest:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_reader_that_goes_away_ends_the_answer_without_a_word() {
    let model = bedtime();
    let mut child = long_run(&model);
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(141) && said.is_empty(), "{said}");
}
