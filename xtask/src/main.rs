//! Project chores, run as `cargo xtask COMMAND`. So far one: `tidy`, the rules of the house that a machine can check.
//!
//! This program knows the repository's text only: it builds nothing, runs nothing and opens no connection.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

mod tidy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy\n\n  tidy   check the rules of the house over the whole repository";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy_command(),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Prints every finding on its own line and fails if there is one.
fn tidy_command() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace root");
    match tidy::check(root) {
        Ok(findings) if findings.is_empty() => {
            println!("tidy: {} rules hold", tidy::RULES.len());
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            eprintln!("tidy: {} findings", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {}: {error}", root.display());
            ExitCode::FAILURE
        }
    }
}
