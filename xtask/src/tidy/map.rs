//! `docs/map.md` is what the modules say of themselves: `cargo xtask map` writes it, and this rule sees that it is fresh.
//!
//! Each crate has its first sentence, each of its modules its own, and below a folder its files have their names. Tests are
//! left out.

use super::{RepoFile, RepoTree, TidyFinding};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

pub(crate) const USAGE: &str =
    "       cargo xtask map        write docs/map.md from the first sentences of the modules\n";

const MAP: &str = "docs/map.md";
const HEAD: &str = "# Map

Every crate and module with the first sentence of its own documentation, and the files of each folder by name. `cargo xtask
map` writes this page and `cargo xtask tidy` checks it: to change a line, change the first `//!` line of the module.
[The architecture](../ARCHITECTURE.md) says how the crates fit together.
";

/// Writes the map of the repository at `root`.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let tree = RepoTree::read(root).map_err(|error| format!("{}: {error}", root.display()))?;
    fs::write(root.join(MAP), page(&tree)).map_err(|error| format!("{MAP}: {error}"))
}

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    for file in tree.files.iter().filter(|file| source(file).is_some()) {
        if sentence(&file.text).is_none() {
            findings.push(TidyFinding::new(&file.path, 1, "begins with no `//!` sentence: say what the module is for"));
        }
    }
    let (there, wanted) = (tree.file(MAP).map_or("", |file| &file.text), page(tree));
    let differs = there.lines().zip(wanted.lines()).position(|(there, wanted)| there != wanted);
    let shorter = there.lines().count().min(wanted.lines().count());
    if there != wanted {
        let line = differs.unwrap_or(shorter) + 1;
        findings.push(TidyFinding::new(MAP, line, "is not what the modules say: run `cargo xtask map`"));
    }
}

/// The crate's folder and the path below its `src`, of a source that is no test.
fn source(file: &RepoFile) -> Option<(&str, &str)> {
    let (folder, path) = file.path.split_once("/src/")?;
    let crate_folder = folder == "xtask" || folder.strip_prefix("crates/").is_some_and(|name| !name.contains('/'));
    let is_test = path.split('/').any(|part| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs"));
    (file.is_rust() && crate_folder && !is_test).then_some((folder, path))
}

/// The whole page.
fn page(tree: &RepoTree) -> String {
    let mut crates: BTreeMap<&str, BTreeMap<String, &RepoFile>> = BTreeMap::new();
    for file in &tree.files {
        if let Some((folder, path)) = source(file) {
            crates.entry(folder).or_default().insert(module(path), file);
        }
    }
    let mut page = HEAD.to_owned();
    for (folder, modules) in &crates {
        let name = folder.rsplit('/').next().unwrap_or(folder);
        let root = ["lib", "main"].into_iter().find(|root| modules.contains_key(*root)).unwrap_or("lib");
        let says = modules.get(root).and_then(|file| sentence(&file.text)).unwrap_or_default();
        let _ = write!(page, "\n## {name}\n\n[`{folder}/src/{root}.rs`](../{folder}/src/{root}.rs): {says}\n\n");
        for (module, file) in modules.iter().filter(|(module, _)| *module != root) {
            if let Some(line) = entry(module, file, modules) {
                let _ = writeln!(page, "- {line}");
            }
        }
    }
    page
}

/// A module's line; none for a file deep down that has no files of its own, which stands in its folder's line.
fn entry(module: &str, file: &RepoFile, modules: &BTreeMap<String, &RepoFile>) -> Option<String> {
    let below = format!("{module}/");
    let files: Vec<String> = modules
        .keys()
        .filter_map(|other| other.strip_prefix(&below))
        .filter(|name| !name.contains('/') && !is_folder(&format!("{below}{name}"), modules))
        .map(|name| format!("`{name}`"))
        .collect();
    if module.contains('/') && !is_folder(module, modules) {
        return None;
    }
    let mark = if is_folder(module, modules) { "/" } else { "" };
    let says = sentence(&file.text).unwrap_or_default();
    let files = if files.is_empty() { String::new() } else { format!(" ({})", files.join(", ")) };
    Some(format!("`{module}{mark}`: {says}{files}"))
}

fn is_folder(module: &str, modules: &BTreeMap<String, &RepoFile>) -> bool {
    let below = format!("{module}/");
    modules.range(below.clone()..).next().is_some_and(|(name, _)| name.starts_with(&below))
}

/// A source's path as its module's: without `.rs`, and without `mod`.
fn module(path: &str) -> String {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    path.strip_suffix("/mod").unwrap_or(path).to_owned()
}

/// The first sentence of a file's `//!` lines, on one line and without the brackets of links.
fn sentence(text: &str) -> Option<String> {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let paragraph = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |at| at + 1);
    let sentence = unlinked(&paragraph[..end]);
    (!sentence.is_empty()).then_some(sentence)
}

/// `` [`Name`](path) `` and `` [`Name`] `` as `` `Name` ``: links of sources lead nowhere from a page.
fn unlinked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        plain.push_str(before);
        let Some((name, after)) = link.split_once("`]") else {
            rest = &rest[before.len()..];
            break;
        };
        let _ = write!(plain, "`{name}`");
        rest = after.strip_prefix('(').and_then(|target| target.split_once(')')).map_or(after, |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::super::{RepoTree, run};
    use super::{HEAD, check, page, sentence};

    const FILES: &[(&str, &str)] = &[
        ("crates/a/src/lib.rs", "//! Adds\n//! numbers. Knows no more.\n"),
        ("crates/a/src/one.rs", "//! [`One`](crate::One) and\n//! [`Two`], in 3.5 ways.\n//!\n//! More.\n"),
        ("crates/a/src/deep/mod.rs", "//! Deep.\n"),
        ("crates/a/src/deep/leaf.rs", "//! A leaf.\n"),
        ("crates/a/src/deep/deeper/mod.rs", "//! Deeper.\n"),
        ("crates/a/src/deep/deeper/end.rs", "//! An end.\n"),
        ("crates/a/src/deep/tests.rs", "use super::*;\n"),
        ("crates/a/tests/whole.rs", "fn main() {}\n"),
        ("xtask/src/main.rs", "//! Chores.\n"),
    ];

    const MAP: &str = "
## a

[`crates/a/src/lib.rs`](../crates/a/src/lib.rs): Adds numbers.

- `deep/`: Deep. (`leaf`)
- `deep/deeper/`: Deeper. (`end`)
- `one`: `One` and `Two`, in 3.5 ways.

## xtask

[`xtask/src/main.rs`](../xtask/src/main.rs): Chores.

";

    #[test]
    fn folders_have_a_line_and_their_files_a_name() {
        assert_eq!(page(&RepoTree::of(FILES)), format!("{HEAD}{MAP}"));
    }

    #[test]
    fn a_map_that_is_fresh_is_fine_and_one_that_is_not_is_found_at_its_line() {
        let fresh = format!("{HEAD}{MAP}");
        assert!(run(check, &[FILES, &[("docs/map.md", &fresh)]].concat()).is_empty());
        let stale = fresh.replace("Deeper.", "Deep down.");
        let found = run(check, &[FILES, &[("docs/map.md", &stale)]].concat());
        assert_eq!(found, ["docs/map.md:12: is not what the modules say: run `cargo xtask map`"]);
        assert_eq!(run(check, FILES), ["docs/map.md:1: is not what the modules say: run `cargo xtask map`"]);
    }

    #[test]
    fn a_module_that_says_nothing_is_found() {
        let found = run(check, &[("crates/a/src/lib.rs", "use std::fmt;\n")]);
        assert_eq!(found[0], "crates/a/src/lib.rs:1: begins with no `//!` sentence: say what the module is for");
        assert_eq!(sentence("//!\n//! Late.\n"), None);
    }

    #[test]
    fn what_is_no_link_stays() {
        assert_eq!(sentence("//! `a[i]` of [`b`.\n").unwrap(), "`a[i]` of [`b`.");
    }
}
