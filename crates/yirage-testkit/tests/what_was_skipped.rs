//! The end of a run of all tests: what was left out, and why. `cargo test` runs this last.
//!
//! A test that is `#[ignore]`d stands here with its reason; so does what a test noted while it ran
//! ([`yirage_testkit::skipped`]). Fails where an `#[ignore]` gives no reason.
#![allow(clippy::print_stdout)] // that is its job

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use yirage_testkit::skipped;

fn main() -> ExitCode {
    // What asks for the tests of this program, not for their run.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    files.sort();
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut bare = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap_or_default();
        let shown = file.strip_prefix(&crates).unwrap_or(file).display().to_string();
        for ignored in ignored(&text) {
            match ignored.reason {
                // Those are run, as processes of another test.
                Some(reason) if reason.starts_with("run by ") => {}
                Some(reason) => reasons.entry(reason).or_default().push(format!("{shown}: {}", ignored.test)),
                None => bare.push(format!("{shown}: {}", ignored.test)),
            }
        }
    }
    say("ignored; `cargo test -- --ignored` runs them and fails where what they need is absent", &reasons);
    let mut lacking: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in skipped::take() {
        let (test, what) = line.split_once(": ").unwrap_or(("?", &line));
        lacking.entry(what.to_owned()).or_default().push(test.to_owned());
    }
    say("left out by tests of this run, for what this machine lacks", &lacking);
    for test in &bare {
        println!("{test} is ignored without a reason: write #[ignore = \"needs ...\"]");
    }
    if bare.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn say(title: &str, reasons: &BTreeMap<String, Vec<String>>) {
    println!("\n{title}: {}", reasons.values().map(Vec::len).sum::<usize>());
    for (reason, tests) in reasons {
        println!("    {reason}:");
        tests.iter().for_each(|test| println!("        {test}"));
    }
}

struct Ignored<'a> {
    test: &'a str,
    reason: Option<String>,
}

/// Ignored tests of a source file.
fn ignored(text: &str) -> Vec<Ignored<'_>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(attribute) = line.strip_prefix("#[ignore") else { continue };
        let function = lines[at..].iter().find_map(|line| line.strip_prefix("fn ")).unwrap_or("?");
        let test = function.split('(').next().unwrap_or(function);
        let reason = attribute.strip_prefix(" = \"").and_then(|rest| rest.strip_suffix("\"]")).map(str::to_owned);
        found.push(Ignored { test, reason });
    }
    found
}

/// Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}
