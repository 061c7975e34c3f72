//! Every row of the checklist is open or names what shows it, and what it names exists and runs.
//!
//! In the last column stands in backticks: a test's function or file, `file::function`, a test of the Python package, a
//! path of the repository, or a command of this program. A test that is `#[ignore]`d shows nothing.

use super::{RepoFile, RepoTree, TidyFinding};
use std::collections::BTreeSet;

const CHECKLIST: &str = "docs/checklist.md";
const OPEN: &str = "not yet";
const COMMAND: &str = "cargo xtask ";
/// Where the tests of the Python package stand.
const PYTHON_TESTS: &str = "python/tests/";
/// Where this program's commands stand.
const COMMANDS: &str = "xtask/src/main.rs";

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let Some(checklist) = tree.file(CHECKLIST) else { return };
    let mut tests: BTreeSet<String> = tree.files.iter().filter(|file| file.is_rust()).flat_map(tests_of).collect();
    tests.extend(tree.files.iter().filter(|file| file.path.starts_with(PYTHON_TESTS)).flat_map(tests_of_python));
    for (line, text) in checklist.lines() {
        let Some(shown) = last_cell(text).filter(|shown| *shown != OPEN) else { continue };
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            findings.push(TidyFinding::new(
                CHECKLIST,
                line,
                format!("`{shown}` names no test; a row without one is `{OPEN}`"),
            ));
        }
        for name in names.into_iter().filter(|name| !exists(tree, &tests, name)) {
            let message = format!("`{name}`: no such test that runs, no such file and no such command");
            findings.push(TidyFinding::new(CHECKLIST, line, message));
        }
    }
}

/// The last cell of a row of a table; none for headings and other lines.
fn last_cell(line: &str) -> Option<&str> {
    let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
    let is_item = row.starts_with(char::is_uppercase) && row[1..].starts_with(|c: char| c.is_ascii_digit());
    is_item.then(|| row.rsplit(" | ").next().unwrap_or(row))
}

fn exists(tree: &RepoTree, tests: &BTreeSet<String>, name: &str) -> bool {
    if let Some(command) = name.strip_prefix(COMMAND) {
        let command = command.split(' ').next().unwrap_or(command);
        return tree.file(COMMANDS).is_some_and(|file| file.text.contains(&format!("[\"{command}\"")));
    }
    tests.contains(name) || tree.paths.contains(name)
}

/// The tests of a file that run: each by its function, by the file's name with the function, and the file itself.
fn tests_of(file: &RepoFile) -> Vec<String> {
    let stem = stem(&file.path);
    let functions = functions(&file.text);
    let mut names: Vec<String> = functions.iter().flat_map(|f| [(*f).to_owned(), format!("{stem}::{f}")]).collect();
    if !functions.is_empty() {
        names.push(stem.to_owned());
    }
    names
}

/// The functions of a file that pytest runs.
fn tests_of_python(file: &RepoFile) -> impl Iterator<Item = String> {
    let names = file.text.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next());
    names.filter(|name| name.starts_with("test_")).map(str::to_owned)
}

/// A file's name as a test's; a folder's for `mod.rs`, `main.rs` and `tests.rs`, which have none of their own.
fn stem(path: &str) -> &str {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    if ["mod", "main", "tests"].contains(&name) { parts.next().unwrap_or(name) } else { name }
}

/// Functions under `#[test]` that are not ignored.
fn functions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut is_test, mut is_ignored) = (false, false);
    for line in text.lines().map(str::trim_start) {
        is_test |= line.starts_with("#[test]");
        is_ignored |= line.starts_with("#[ignore");
        if let Some(rest) = line.strip_prefix("fn ") {
            if is_test && !is_ignored {
                found.extend(rest.split('(').next());
            }
            (is_test, is_ignored) = (false, false);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    #[test]
    fn rows_name_what_exists_and_runs() {
        let tests = "#[test]\nfn runs() {}\n\n#[test]\n#[ignore = \"needs a model\"]\nfn waits() {}\nfn helper() {}\n";
        let rows = [
            "| # | feature | test that shows it |",
            "|---|---|---|",
            "| A1 | a | not yet |",
            "| A2 | `b` | `runs`, `sums::runs`, `sums` and `test_sums`; part of `.ci/run`, `cargo xtask tidy` |",
            "| A3 | c | `waits`, `helper`, `gone`, `test_none` and `cargo xtask fly` |",
            "| A4 | d | surely |",
        ];
        let files = [
            ("docs/checklist.md", &*rows.join("\n")),
            ("crates/a/tests/sums.rs", tests),
            ("python/tests/test_all.py", "def test_sums(yr):\n    pass\n\ndef helper():\n    pass\n"),
            ("tools/other.py", "def test_none():\n    pass\n"),
            (".ci/run", ""),
            ("xtask/src/main.rs", "[\"tidy\"] => x"),
        ];
        let missing = |name: &str| {
            format!("docs/checklist.md:5: `{name}`: no such test that runs, no such file and no such command")
        };
        let mut want = ["waits", "helper", "gone", "test_none", "cargo xtask fly"].map(missing).to_vec();
        want.push("docs/checklist.md:6: `surely` names no test; a row without one is `not yet`".to_owned());
        assert_eq!(run(check, &files), want);
    }

    #[test]
    fn files_without_names_have_their_folders() {
        assert_eq!(super::stem("crates/a/src/walk/tests.rs"), "walk");
        assert_eq!(super::stem("crates/a/tests/cli/docs.rs"), "docs");
    }
}
