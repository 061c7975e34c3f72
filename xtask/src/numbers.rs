//! Numbers of the house: what the rules count, of this repository or of another checkout beside it, to be told before and after.
//!
//! Knows what the tidy rules know, and nothing of speed.

use crate::tidy::{RepoTree, count};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(crate) const USAGE: &str =
    "       cargo xtask numbers [FOLDER]   type names, circles, duplicates and more, of FOLDER or of this repository\n";

/// Lines of a run that counts as a duplicate.
const RUN: usize = 6;

/// Prints the numbers of the repository at `root`.
///
/// # Errors
/// It could not be read.
#[expect(clippy::print_stdout, reason = "a command line tool talks to its terminal")]
pub(crate) fn print(root: &Path) -> Result<(), String> {
    let tree = RepoTree::read(root).map_err(|error| format!("{}: {error}", root.display()))?;
    for (what, count) in numbers(&tree) {
        println!("{count:>8}  {what}");
    }
    Ok(())
}

fn numbers(tree: &RepoTree) -> Vec<(&'static str, usize)> {
    let lines = |path: &str| tree.file(path).map_or(0, |file| file.lines().count());
    let rows = |path: &str| {
        tree.file(path).map_or(0, |file| file.lines().filter(|(_, line)| line.starts_with("| **")).count())
    };
    let sources = || tree.files.iter().filter(|file| file.is_rust() && file.path.contains("/src/"));
    vec![
        ("type names defined more than once", count::repeated_type_names(tree)),
        ("terms of the glossary", rows("docs/glossary.md")),
        ("folders whose modules import each other in a circle", count::circles(tree)),
        ("lines of ARCHITECTURE.md", lines("ARCHITECTURE.md")),
        ("lines of README.md", lines("README.md")),
        ("lines of sources that stand in a run of six or more twice", duplicates(tree)),
        ("SAFETY comments that name no promise", count::nameless_safety(tree)),
        ("SAFETY comments", count::safety(tree)),
        ("lines of Rust sources", sources().map(|file| file.lines().count()).sum()),
        (
            "crates",
            tree.paths.iter().filter(|path| path.starts_with("crates/") && path.ends_with("/Cargo.toml")).count(),
        ),
    ]
}

/// Lines of the crates' sources that stand in runs of [`RUN`] lines or more that stand elsewhere too. Comments, empty lines,
/// imports and lone brackets are passed over: what a formatter puts there is nobody's copy.
fn duplicates(tree: &RepoTree) -> usize {
    let mut windows: BTreeMap<u64, Vec<(usize, usize)>> = BTreeMap::new();
    let files: Vec<Vec<u64>> = tree
        .files
        .iter()
        .filter(|file| file.is_rust() && file.path.starts_with("crates/") && file.path.contains("/src/"))
        .map(|file| file.text.lines().filter_map(told).collect())
        .collect();
    for (file, lines) in files.iter().enumerate() {
        for (at, run) in lines.windows(RUN).enumerate() {
            windows.entry(fnv(run.iter().flat_map(|line| line.to_le_bytes()))).or_default().push((file, at));
        }
    }
    let mut repeated = BTreeSet::new();
    for (file, at) in windows.into_values().filter(|places| places.len() > 1).flatten() {
        repeated.extend((at..at + RUN).map(|line| (file, line)));
    }
    repeated.len()
}

/// A line that says something, as a number.
fn told(line: &str) -> Option<u64> {
    let line = line.trim();
    let silent = line.is_empty() || line.starts_with("//") || line.starts_with("use ") || line.starts_with("#[");
    let letters = line.chars().any(char::is_alphanumeric);
    (!silent && letters).then(|| fnv(line.bytes()))
}

fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_twice_is_counted_in_both_places() {
        let run: String = (0..RUN).map(|i| format!("    let a{i} = {i};\n")).collect();
        let (one, other) =
            (format!("fn a() {{\n{run}}}\n"), format!("// a comment\nfn b() {{\n{run}    done();\n}}\n"));
        let tree = RepoTree::of(&[("crates/a/src/a.rs", &one), ("crates/b/src/b.rs", &other)]);
        assert_eq!(duplicates(&tree), 2 * RUN);
        let short = one.replace("a3", "b3");
        assert_eq!(duplicates(&RepoTree::of(&[("crates/a/src/a.rs", &one), ("crates/b/src/b.rs", &short)])), 0);
    }

    #[test]
    fn a_glossary_and_a_page_are_counted() {
        let tree = RepoTree::of(&[
            ("docs/glossary.md", "| word |\n| **op** | x |\n| **plan** | y |\n"),
            ("ARCHITECTURE.md", "a\nb\n"),
        ]);
        let numbers = numbers(&tree);
        assert_eq!((numbers[1].1, numbers[3].1), (2, 2));
    }
}
