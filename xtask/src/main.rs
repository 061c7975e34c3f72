//! Project chores, run as `cargo xtask COMMAND`: `tidy`, the rules of the house that a machine can check, `map`, the page
//! of all modules, `support`, the page of what has run where, `proofs`, what a verified plan proves, `stubs` of layer
//! methods, `mutants`, mistakes that the tests must notice, `walks`, what CONTRIBUTING.md walks through, `numbers` of what
//! the rules count, `migrate-text`, texts of an older form, `pictures` of recorded terminals, and `bench-rivals`, our speed
//! beside others'.
//!
//! `tidy`, `map`, `support`, `proofs` and `stubs` know the repository's text only. Nothing here opens a connection or is
//! part of what is released.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

mod migrate_text;
mod mutants;
mod numbers;
mod patch;
mod picture;
mod rivals;
mod tidy;
mod walks;
mod workspace_copy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy   check the rules of the house over the whole repository\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy_command(),
        ["map"] => said("map", tidy::map::write(root())),
        ["support"] => said("support", tidy::support::write(root())),
        ["proofs"] => said("proofs", tidy::proofs::write(root())),
        ["stubs"] => said("stubs", tidy::stubs::write(root())),
        ["mutants", ..] => said("mutants", mutants::run(root(), &arguments[1..])),
        ["walks"] => said("walks", walks::run(root())),
        ["migrate-text", ..] => said("migrate-text", migrate_text::run(&arguments[1..])),
        ["numbers"] => said("numbers", numbers::print(root())),
        ["numbers", folder] => said("numbers", numbers::print(Path::new(folder))),
        ["pictures"] => said("pictures", picture::draw(root())),
        ["bench-rivals", ..] => said("bench-rivals", rivals::run(root(), &arguments[1..])),
        _ => {
            let usages = [
                tidy::map::USAGE,
                tidy::support::USAGE,
                tidy::proofs::USAGE,
                tidy::stubs::USAGE,
                picture::USAGE,
                mutants::USAGE,
                walks::USAGE,
                migrate_text::USAGE,
                numbers::USAGE,
            ]
            .concat();
            eprintln!("{USAGE}{usages}\n{}", rivals::USAGE);
            ExitCode::from(2)
        }
    }
}

/// The workspace's folder.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace root")
}

/// A command's end; a failure says why.
fn said(command: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{command}: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Prints every finding on its own line and fails if there is one.
fn tidy_command() -> ExitCode {
    let root = root();
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
