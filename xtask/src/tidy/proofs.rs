//! What `VerifiedPlan` says that it proves is what its checks say: each check has a comment that begins with `Proves:`, and
//! `cargo xtask proofs` writes all of them into the type's documentation, which this rule compares.
//!
//! Whether a check proves what its comment says is shown by tests of the checks, not here.

use super::{RepoTree, TidyFinding};
use std::fs;
use std::path::Path;

pub(crate) const USAGE: &str =
    "       cargo xtask proofs     write what a verified plan proves from what its checks say\n";

/// Where the list stands, and the checks in the order in which they are made.
const LIST: &str = "crates/yirage-plan/src/verify/mod.rs";
const CHECKS: &[&str] = &[
    LIST,
    "crates/yirage-plan/src/verify/interface.rs",
    "crates/yirage-plan/src/verify/steps.rs",
    "crates/yirage-plan/src/verify/kernels.rs",
    "crates/yirage-plan/src/verify/quantised.rs",
    "crates/yirage-plan/src/verify/placements.rs",
    "crates/yirage-plan/src/tasks/verify.rs",
];
/// What a statement of a check begins with, and the lines between which the list stands.
const PROVES: &str = "// Proves: ";
const BEGIN: &str = "/// What holds:\n///\n";
const END: &str = "///\n/// What does not:";
const WIDTH: usize = 120;

/// Writes the list of the repository at `root`.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let tree = RepoTree::read(root).map_err(|error| format!("{}: {error}", root.display()))?;
    let text = with_list(&tree).ok_or_else(|| format!("{LIST} has no lines `What holds:` and `What does not:`"))?;
    fs::write(root.join(LIST), text).map_err(|error| format!("{LIST}: {error}"))
}

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let Some(file) = tree.file(LIST) else { return };
    for path in CHECKS.iter().filter(|path| statements(tree, path).is_empty()) {
        findings.push(TidyFinding::new(path, 0, "says nothing of what it proves: begin a comment with `Proves:`"));
    }
    if with_list(tree).as_deref() != Some(&file.text) {
        findings.push(TidyFinding::new(LIST, 0, "does not list what its checks prove: run `cargo xtask proofs`"));
    }
}

/// The file of the list with the list as the checks have it.
fn with_list(tree: &RepoTree) -> Option<String> {
    let text = &tree.file(LIST)?.text;
    let begin = text.find(BEGIN)? + BEGIN.len();
    let end = begin + text[begin..].find(END)?;
    let list: String = CHECKS.iter().flat_map(|path| statements(tree, path)).map(|one| item(&one)).collect();
    Some(format!("{}{list}{}", &text[..begin], &text[end..]))
}

/// The statements of a file's checks, each on one line.
fn statements(tree: &RepoTree, path: &str) -> Vec<String> {
    let Some(file) = tree.file(path) else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    for (_, line) in file.lines() {
        let line = line.trim_start();
        if let Some(begun) = line.strip_prefix(PROVES) {
            found.push(begun.to_owned());
            inside = true;
        } else if let (true, Some(more), Some(whole)) = (inside, line.strip_prefix("// "), found.last_mut()) {
            whole.push(' ');
            whole.push_str(more);
        } else {
            inside = false;
        }
    }
    found
}

/// An item of a list in a documentation comment, in lines of the width of the code.
fn item(statement: &str) -> String {
    let (mut text, mut line) = (String::new(), "/// -".to_owned());
    for word in statement.split(' ') {
        if line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            "///  ".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    text + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::{RepoTree, run};
    use super::{CHECKS, LIST, check, with_list};

    /// Files of which each check says one thing, and a list.
    fn files(list: &str) -> Vec<(&'static str, String)> {
        let says = |path: &&'static str| {
            let name = path.rsplit('/').next().unwrap();
            let head = format!("/// What holds:\n///\n{list}///\n/// What does not: luck.\n");
            let head = if *path == LIST { head } else { String::new() };
            (*path, format!("{head}fn a() {{\n    // Proves: **{name}** holds,\n    // always.\n    b();\n}}\n"))
        };
        CHECKS.iter().map(says).collect()
    }

    fn found(files: &[(&'static str, String)]) -> Vec<String> {
        run(check, &files.iter().map(|(path, text)| (*path, text.as_str())).collect::<Vec<_>>())
    }

    #[test]
    fn the_list_is_what_the_checks_say() {
        let stale = files("/// - **mod.rs** held.\n");
        assert!(matches!(&found(&stale)[..], [one] if one.contains("run `cargo xtask proofs`")));
        let tree = RepoTree::of(&stale.iter().map(|(path, text)| (*path, text.as_str())).collect::<Vec<_>>());
        let written = with_list(&tree).unwrap();
        assert!(
            written.contains("/// - **mod.rs** holds, always.\n/// - **interface.rs** holds, always.\n"),
            "{written}"
        );
        let mut fresh = stale;
        fresh[0].1 = written;
        assert_eq!(found(&fresh), [""; 0]);
    }

    #[test]
    fn a_check_that_says_nothing_is_found() {
        let mut silent = files("");
        silent[2].1 = "fn a() {}\n".into();
        assert!(found(&silent)[0].starts_with("crates/yirage-plan/src/verify/steps.rs:0: says nothing"));
    }
}
