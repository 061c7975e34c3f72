//! Every row of the checklist is open or leads to the tests that show it, and what is named there exists and runs.
//!
//! A row is one short line. Its last cell is `not yet`, or a link to the row's section in the page of tests, which says
//! `shown`, or `part` and what is missing. In the bullets of such a section stands in backticks: a test's function or file,
//! `file::function`, a test of the Python package, a path of the repository, or a command of this program. A test that is
//! `#[ignore]`d shows nothing.

use super::{RepoFile, RepoTree, TidyFinding};
use std::collections::{BTreeMap, BTreeSet};

const CHECKLIST: &str = "docs/checklist.md";
const TESTS: &str = "docs/checklist-tests.md";
const OPEN: &str = "not yet";
/// Most letters of a row.
const MAX_ROW: usize = 190;
const COMMAND: &str = "cargo xtask ";
/// Where the tests of the Python package stand.
const PYTHON_TESTS: &str = "python/tests/";
/// Where this program's commands stand.
const COMMANDS: &str = "xtask/src/main.rs";

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let Some(checklist) = tree.file(CHECKLIST) else { return };
    let sections = tree.file(TESTS).map(sections).unwrap_or_default();
    let mut led_to = BTreeSet::new();
    for (line, text) in checklist.lines() {
        let Some((id, state)) = row(text) else { continue };
        if text.chars().count() > MAX_ROW {
            let message = format!("`{id}` is longer than {MAX_ROW} letters: say it shorter, or in {TESTS}");
            findings.push(TidyFinding::new(CHECKLIST, line, message));
        }
        match state_of(id, state) {
            Some(false) => {}
            Some(true) if sections.contains_key(id) => {
                led_to.insert(id);
            }
            Some(true) => findings.push(TidyFinding::new(CHECKLIST, line, format!("`{id}` has no section in {TESTS}"))),
            None => {
                let link = format!("[shown](checklist-tests.md#{})", id.to_lowercase());
                let message = format!("`{state}` is neither `{OPEN}` nor `{link}`, nor such a part with `; missing: `");
                findings.push(TidyFinding::new(CHECKLIST, line, message));
            }
        }
    }
    let tests = all_tests(tree);
    for (id, section) in &sections {
        if !led_to.contains(id) {
            findings.push(TidyFinding::new(TESTS, section.line, format!("no row of {CHECKLIST} leads to `{id}`")));
        }
        if section.names.is_empty() {
            findings.push(TidyFinding::new(TESTS, section.line, format!("`{id}` names no test; its row is `{OPEN}`")));
        }
        for (line, name) in section.names.iter().filter(|(_, name)| !exists(tree, &tests, name)) {
            let message = format!("`{name}`: no such test that runs, no such file and no such command");
            findings.push(TidyFinding::new(TESTS, *line, message));
        }
    }
}

/// The name and the last cell of a row of the table; none for headings and other lines.
fn row(line: &str) -> Option<(&str, &str)> {
    let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
    let (id, rest) = row.split_once(" | ")?;
    is_id(id).then(|| (id, rest.rsplit(" | ").next().unwrap_or(rest)))
}

/// A letter and a number.
fn is_id(text: &str) -> bool {
    let number = text.strip_prefix(|c: char| c.is_ascii_uppercase());
    number.is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// Whether a row's state leads to tests; none where it is no state.
fn state_of(id: &str, state: &str) -> Option<bool> {
    if state == OPEN {
        return Some(false);
    }
    let link = format!("](checklist-tests.md#{})", id.to_lowercase());
    let (word, rest) = state.strip_prefix('[')?.split_once(&link)?;
    let missing = rest.strip_prefix("; missing: ").is_some_and(|what| !what.is_empty());
    ((word == "shown" && rest.is_empty()) || (word == "part" && missing)).then_some(true)
}

/// What the page of tests has under one heading.
struct ChecklistTests<'a> {
    line: usize,
    /// What stands in backticks in its bullets, with the lines.
    names: Vec<(usize, &'a str)>,
}

/// The sections by the names of their rows: headings `### K1`.
fn sections(page: &RepoFile) -> BTreeMap<&str, ChecklistTests<'_>> {
    let mut sections: BTreeMap<&str, ChecklistTests<'_>> = BTreeMap::new();
    let mut current = None;
    for (line, text) in page.lines() {
        if text.starts_with('#') {
            current = text.strip_prefix("### ").filter(|id| is_id(id));
            if let Some(id) = current {
                sections.insert(id, ChecklistTests { line, names: Vec::new() });
            }
        } else if text.starts_with("- ") || text.starts_with("  ") {
            let names = text.split('`').skip(1).step_by(2).map(|name| (line, name));
            if let Some(section) = current.and_then(|id| sections.get_mut(id)) {
                section.names.extend(names);
            }
        }
    }
    sections
}

/// All tests that run, by each of their names.
fn all_tests(tree: &RepoTree) -> BTreeSet<String> {
    let mut tests: BTreeSet<String> = tree.files.iter().filter(|file| file.is_rust()).flat_map(tests_of).collect();
    tests.extend(tree.files.iter().filter(|file| file.path.starts_with(PYTHON_TESTS)).flat_map(tests_of_python));
    tests
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
    fn sections_name_what_exists_and_runs() {
        let tests = "#[test]\nfn runs() {}\n\n#[test]\n#[ignore = \"needs a model\"]\nfn waits() {}\nfn helper() {}\n";
        let rows = "| # | promise | state |\n|---|---|---|\n| A1 | a | not yet |\n\
                    | A2 | `b` | [shown](checklist-tests.md#a2) |\n\
                    | A3 | c | [part](checklist-tests.md#a3); missing: more |\n";
        let page = "# Tests\n### A2\nWorks means: `whatever`.\n\n\
                    - `runs`, `sums::runs`, `sums` and `test_sums`\n- part of `.ci/run`,\n  `cargo xtask tidy`\n\
                    ### A3\n- `waits`, `helper`, `gone`,\n  `test_none` and `cargo xtask fly`\n";
        let files = [
            ("docs/checklist.md", rows),
            ("docs/checklist-tests.md", page),
            ("crates/a/tests/sums.rs", tests),
            ("python/tests/test_all.py", "def test_sums(yr):\n    pass\n\ndef helper():\n    pass\n"),
            ("tools/other.py", "def test_none():\n    pass\n"),
            (".ci/run", ""),
            ("xtask/src/main.rs", "[\"tidy\"] => x"),
        ];
        let missing = |(line, name): (usize, &str)| {
            format!(
                "docs/checklist-tests.md:{line}: `{name}`: no such test that runs, no such file and no such command"
            )
        };
        let want = [(9, "waits"), (9, "helper"), (9, "gone"), (10, "test_none"), (10, "cargo xtask fly")].map(missing);
        assert_eq!(run(check, &files), want);
    }

    #[test]
    fn rows_and_sections_lead_to_each_other() {
        let long = format!("| A5 | {} | not yet |", "long ".repeat(40));
        let rows = [
            "| A1 | a | [shown](checklist-tests.md#a2) |",
            "| A2 | a | [shown](checklist-tests.md#a2); missing: more |",
            "| A3 | a | surely |",
            "| A4 | a | [shown](checklist-tests.md#a4) |",
            &long,
        ];
        let page = "### A6\n- `docs/checklist.md`\n### A7\nby hand\n";
        let found = run(check, &[("docs/checklist.md", &*rows.join("\n")), ("docs/checklist-tests.md", page)]);
        let begins = [
            "docs/checklist.md:1: `[shown](checklist-tests.md#a2)` is neither",
            "docs/checklist.md:2: `[shown](checklist-tests.md#a2); missing: more` is neither",
            "docs/checklist.md:3: `surely` is neither `not yet` nor `[shown](checklist-tests.md#a3)`",
            "docs/checklist.md:4: `A4` has no section in docs/checklist-tests.md",
            "docs/checklist.md:5: `A5` is longer than 190 letters",
            "docs/checklist-tests.md:1: no row of docs/checklist.md leads to `A6`",
            "docs/checklist-tests.md:3: no row of docs/checklist.md leads to `A7`",
            "docs/checklist-tests.md:3: `A7` names no test; its row is `not yet`",
        ];
        assert_eq!(found.len(), begins.len(), "{found:?}");
        assert!(found.iter().zip(begins).all(|(found, begins)| found.starts_with(begins)), "{found:?}");
    }

    #[test]
    fn files_without_names_have_their_folders() {
        assert_eq!(super::stem("crates/a/src/walk/tests.rs"), "walk");
        assert_eq!(super::stem("crates/a/tests/cli/docs.rs"), "docs");
    }
}
