//! A SAFETY comment says what makes the code sound: the promise that it relies on, by the name of the function or type that
//! states it, or the fact. One that only says that somebody promised something is none, and one that names a type or
//! function of the workspace names one that there is.
//!
//! Whether what is said is true is not known here.

use super::{RepoFile, RepoTree, TidyFinding};
use std::collections::HashSet;

/// Files with comments that name nothing, and how many they have. None is to be added, and no number to rise.
const NAMELESS: &[(&str, usize)] = &[];

/// What a comment begins with that leaves it to others, whatever it says behind it.
const EMPTY: &[&str] = &["as promised", "as above", "as before", "see above", "the caller", "the contract."];
/// What it may begin with if it says whose.
const OPEN: &[&str] = &["the contract", "as for", "as in"];
/// Words in front of which a name stands where it is defined.
const DEFINERS: &[&str] = &["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod", "macro_rules!"];

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let defined: HashSet<&str> = tree.files.iter().filter(|file| file.is_rust()).flat_map(definitions).collect();
    for file in tree.files.iter().filter(|file| file.is_rust() && file.path != "xtask/src/tidy/safety.rs") {
        let mut nameless = Vec::new();
        for (line, text) in comments(file) {
            if is_nameless(&text) {
                nameless.push(line);
            }
            for name in absent(&text, &defined) {
                let message = format!("`{name}` is nothing here: name what makes this sound as it is called now");
                findings.push(TidyFinding::new(&file.path, line, message));
            }
        }
        let allowed = NAMELESS.iter().find(|(path, _)| *path == file.path).map_or(0, |(_, count)| *count);
        if nameless.len() > allowed {
            for line in nameless {
                let message = "the comment names no promise: say which function's `# Safety`, and what checks it";
                findings.push(TidyFinding::new(&file.path, line, message));
            }
        } else if nameless.len() < allowed {
            let message = format!("{} comments name no promise now, not {allowed}: say so in its list", nameless.len());
            findings.push(TidyFinding::new(&file.path, 0, message));
        }
    }
    for (path, _) in NAMELESS.iter().filter(|(path, _)| tree.file(path).is_none()) {
        findings.push(TidyFinding::new(path, 0, "is not there: take it off the list in xtask/src/tidy/safety.rs"));
    }
}

/// Every SAFETY comment of a tree.
pub(super) fn all(tree: &RepoTree) -> impl Iterator<Item = String> + '_ {
    let files = tree.files.iter().filter(|file| file.is_rust() && file.path != "xtask/src/tidy/safety.rs");
    files.flat_map(|file| comments(file).into_iter().map(|(_, text)| text))
}

/// Each SAFETY comment, to its end, and its line.
fn comments(file: &RepoFile) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (line, text) in file.lines() {
        if let Some((_, begun)) = text.split_once("// SAFETY:") {
            found.push((line, begun.trim().to_owned()));
            inside = true;
        } else if let (true, Some(more), Some((_, whole))) =
            (inside, text.trim_start().strip_prefix("// "), found.last_mut())
        {
            whole.push(' ');
            whole.push_str(more);
        } else {
            inside = false;
        }
    }
    found
}

/// Whether it leaves it to a caller, or to another comment, without a name.
pub(super) fn is_nameless(text: &str) -> bool {
    let low = text.to_lowercase();
    let begins = |with: &[&str]| with.iter().any(|words| low.starts_with(words));
    begins(EMPTY) || (!text.contains('`') && (low.contains("caller") || begins(OPEN)))
}

/// Names of paths between backquotes that nothing here defines; what begins with a crate's name is looked up by its last part.
fn absent<'a>(text: &'a str, defined: &HashSet<&str>) -> Vec<&'a str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let paths = quoted.map(|name| name.trim_end_matches("()")).filter(|name| {
        name.contains("::") && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':')
    });
    let ours = paths.filter(|path| !path.starts_with("std::") && !path.starts_with("libc::"));
    ours.filter(|path| {
        let parts = path.split("::").filter(|part| !part.starts_with("yirage") && *part != "Self");
        parts.into_iter().any(|part| !defined.contains(part))
    })
    .collect()
}

/// What a file defines: items, and the names that stand in front of a colon, a bracket or a comma at the start of a line,
/// which fields and variants do.
fn definitions(file: &RepoFile) -> Vec<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found = Vec::new();
    for (_, line) in file.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| DEFINERS.contains(&pair[0])) {
            found.push(&pair[1][..pair[1].find(|letter| !is_part(letter)).unwrap_or(pair[1].len())]);
        }
        let text = line.trim_start();
        let text = text.strip_prefix("pub ").unwrap_or(text);
        let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
        if end > 0 && text[end..].starts_with([':', '(', ',', ' ']) && text.len() < line.len() {
            found.push(&text[..end]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    /// A file of one comment.
    fn found(comment: &str) -> Vec<String> {
        let text = format!("struct Row;\nimpl Row {{\n    fn at() {{}}\n}}\n// SAFETY: {comment}\nunsafe {{ f() }};\n");
        run(check, &[("crates/a/src/lib.rs", &text)])
    }

    #[test]
    fn a_comment_that_names_no_promise_is_found() {
        for empty in [
            "as promised by the caller.",
            "the caller's contract; rows are disjoint.",
            "the contract.",
            "As above.",
            "as for the other.",
            "the caller promises `row`.",
            "the row is long enough,\n// as the caller vouches.",
        ] {
            let lines = found(empty);
            assert_eq!(lines.len(), 1, "{empty}: {lines:?}");
            assert!(lines[0].starts_with("crates/a/src/lib.rs:5: the comment names no promise"), "{lines:?}");
        }
    }

    #[test]
    fn facts_and_names_are_promises() {
        for named in [
            "the array has sixteen floats.",
            "what `Row::at` is promised; the caller of it has checked the row.",
            "as for `at`.",
            "`std::slice` is not ours,\n// and neither is `libc::mmap`.",
        ] {
            assert_eq!(found(named), [""; 0], "{named}");
        }
    }

    #[test]
    fn a_name_of_nothing_is_found() {
        assert_eq!(found("what `Row::at` is promised."), [""; 0]);
        for wrong in ["what `Row::of` is promised.", "`Line::at` has checked it."] {
            let lines = found(wrong);
            assert!(matches!(&lines[..], [one] if one.contains("is nothing here")), "{wrong}: {lines:?}");
        }
    }
}
