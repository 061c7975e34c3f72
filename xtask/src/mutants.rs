//! Mutants: realistic mistakes, each a patch against a crate's sources in `crates/NAME/mutants/`, which that crate's
//! tests must notice. They are put into a copy of the workspace, never into the workspace itself, so that the code that
//! ships holds no switch for them.

mod mutant;
mod suite;

use crate::workspace_copy::WorkspaceCopy;
use mutant::Mutant;
use std::collections::BTreeMap;
use std::path::Path;
use suite::TestVerdict;

/// How the command is called.
pub(crate) const USAGE: &str =
    "       cargo xtask mutants [--check] [NAME..]   put mistakes into a copy of the sources and see tests fail
           --check   only whether each still applies
";

/// Runs the command.
///
/// # Errors
/// What is wrong with a mutant's file, a mutant that its tests do not notice, and whatever keeps tests from running.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let check = arguments.iter().any(|argument| argument == "--check");
    let names: Vec<&String> = arguments.iter().filter(|argument| *argument != "--check").collect();
    if let Some(unknown) = names.iter().find(|name| name.starts_with('-')) {
        return Err(format!("unknown option `{unknown}`\n{USAGE}"));
    }
    let mutants = chosen(mutant::read_all(root)?, &names)?;
    mutants.iter().try_for_each(|mutant| mutant.sources(root).map(drop))?;
    println!("mutants: {} apply", mutants.len());
    if check { Ok(()) } else { run_all(root, &mutants) }
}

/// The mutants with these names; all for none.
fn chosen(all: Vec<Mutant>, names: &[&String]) -> Result<Vec<Mutant>, String> {
    if let Some(name) = names.iter().find(|name| all.iter().all(|mutant| mutant.name != ***name)) {
        return Err(format!(
            "there is no mutant `{name}`; `cargo xtask mutants --check` reads crates/*/mutants/*.patch"
        ));
    }
    Ok(all.into_iter().filter(|mutant| names.is_empty() || names.contains(&&mutant.name)).collect())
}

/// The tests pass without a mutant, and each mutant's own tests fail with it.
fn run_all(root: &Path, mutants: &[Mutant]) -> Result<(), String> {
    let scratch = WorkspaceCopy::of(root, "mutants")?;
    for (package, tests) in tests_of(mutants) {
        let verdicts = suite::run(&scratch, package, &tests)?;
        if let Some((test, verdict)) = verdicts.iter().find(|(_, verdict)| *verdict != TestVerdict::Passed) {
            return Err(format!("{package}: `{test}` {verdict} without any mutant, so it shows nothing"));
        }
    }
    let mut survivors = Vec::new();
    for mutant in mutants {
        scratch.write(&mutant.sources(root)?)?;
        let verdicts = suite::run(&scratch, &mutant.package, &mutant.tests);
        scratch.restore(root, mutant.changes.iter().map(|change| change.path.as_str()))?;
        for (test, verdict) in verdicts.map_err(|why| format!("{}: {why}", mutant.name))? {
            println!("{}: `{test}` {verdict}", mutant.name);
            if verdict != TestVerdict::Failed {
                survivors.push(format!("{}: `{test}` {verdict}", mutant.name));
            }
        }
    }
    if survivors.is_empty() {
        println!("mutants: all {} are noticed", mutants.len());
        return Ok(());
    }
    Err(format!("not noticed:\n{}", survivors.join("\n")))
}

/// The tests that the mutants name, by package, each once.
fn tests_of(mutants: &[Mutant]) -> BTreeMap<&str, Vec<String>> {
    let mut tests: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for mutant in mutants {
        let of_package = tests.entry(&mutant.package).or_default();
        of_package.extend(mutant.tests.iter().cloned());
        of_package.sort_unstable();
        of_package.dedup();
    }
    tests
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_mutant_applies() {
        super::run(crate::root(), &["--check".to_owned()]).unwrap();
    }

    #[test]
    fn unknown_names_and_options_are_errors() {
        for argument in ["--cheek", "no-such-mutant"] {
            let why = super::run(crate::root(), &["--check".to_owned(), argument.to_owned()]).unwrap_err();
            assert!(why.contains(argument), "{why}");
        }
    }
}
