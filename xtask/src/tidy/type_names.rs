//! A type name stands for one type: no two structs, enums, unions, traits or aliases in the sources of the workspace share
//! one. Tests, benchmarks and examples are programs of their own, and name their own types.
//!
//! What is looked at are lines that begin a definition; associated types, which are indented, are none.

use super::{RepoFile, RepoTree, TidyFinding};
use std::collections::BTreeMap;

/// Names that several types may have, with the reason. None is to be added.
const SHARED: &[(&str, &str)] = &[("Signals", "one type, whose parts differ between systems")];

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let places = places(tree);
    for (name, places) in &places {
        let shared = SHARED.iter().any(|(shared, _)| shared == name);
        if let ([(first, at), rest @ ..], false) = (places.as_slice(), shared) {
            for (path, line) in rest {
                let message = format!("`{name}` is a type at {first}:{at} already: name it after what it is");
                findings.push(TidyFinding::new(path, *line, message));
            }
        }
    }
    for (name, _) in SHARED.iter().filter(|(name, _)| places.get(name).is_none_or(|places| places.len() < 2)) {
        let message = format!("`{name}` stands for one type now: take it off this list");
        findings.push(TidyFinding::new("xtask/src/tidy/type_names.rs", 0, message));
    }
}

/// Where each type name is defined.
pub(super) fn places(tree: &RepoTree) -> BTreeMap<&str, Vec<(&str, usize)>> {
    let mut places: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| is_source(file)) {
        for (line, text) in file.lines() {
            if let Some(name) = defined(text) {
                places.entry(name).or_default().push((&file.path, line));
            }
        }
    }
    places
}

fn is_source(file: &RepoFile) -> bool {
    let in_crate = file.path.starts_with("crates/") && file.path.contains("/src/");
    file.is_rust() && (in_crate || file.path.starts_with("xtask/src/"))
}

/// The type that a line begins to define.
fn defined(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let indented = text.len() < line.len();
    let text = match text.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => text,
    };
    let (word, rest) = text.strip_prefix("unsafe ").unwrap_or(text).split_once(' ')?;
    let is_definition = matches!(word, "struct" | "enum" | "union" | "trait") || (word == "type" && !indented);
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
    (is_definition && end > 0).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::{check, defined};

    const SIGNALS: &str = "struct Signals;\nstruct Signals(u8);\n";

    #[test]
    fn a_second_type_of_a_name_is_found() {
        let a = "pub struct Plan<'a> {\nimpl T for Plan {\n    type Out = ();\n";
        let b = "mod m {\n    pub(crate) unsafe trait Plan: Send {\n    type Out = u8;\n";
        let files = [("crates/a/src/lib.rs", a), ("crates/b/src/x.rs", b), ("crates/b/src/signals.rs", SIGNALS)];
        let found = run(check, &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/b/src/x.rs:2: `Plan` is a type at crates/a/src/lib.rs:1"), "{found:?}");
    }

    #[test]
    fn tests_and_benchmarks_are_programs_of_their_own() {
        let files = [
            ("crates/a/src/lib.rs", "struct Case;\n"),
            ("crates/a/tests/t.rs", "struct Case;\n"),
            ("crates/a/benches/b.rs", "struct Case;\n"),
            ("crates/a/src/signals.rs", SIGNALS),
        ];
        assert!(run(check, &files).is_empty());
    }

    #[test]
    fn an_exception_that_is_none_any_more_is_found() {
        let found = run(check, &[("crates/a/src/lib.rs", "struct Signals;\n")]);
        assert!(matches!(&found[..], [one] if one.contains("take it off this list")), "{found:?}");
    }

    #[test]
    fn definitions_are_told_from_uses() {
        assert_eq!(defined("pub(in crate::a) enum Kind {"), Some("Kind"));
        assert_eq!(defined("type Job = (Request, bool);"), Some("Job"));
        assert_eq!(defined("    type Out = ();"), None);
        assert_eq!(defined("// struct Plan"), None);
        assert_eq!(defined("structure Plan"), None);
    }
}
