//! What is in the repository is finished: no marker of work left for later.

use super::{RepoTree, TidyFinding};

/// This file has to spell the words it looks for.
const ITSELF: &str = "xtask/src/tidy/unfinished.rs";
/// Never, in code or comment.
const MACROS: &[&str] = &["todo!(", "unimplemented!("];
/// Not in a comment, where they announce something missing; `placeholder` may well name a variable.
const WORDS: &[&str] = &["TODO", "FIXME", "XXX", "HACK", "placeholder", "for now", "not yet implemented"];

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    for file in tree.files.iter().filter(|file| file.path != ITSELF) {
        let opener = match file.path.rsplit('.').next() {
            Some("rs") => "//",
            Some("sh" | "py" | "toml") | None => "#",
            _ if file.path.starts_with(".ci/") => "#",
            _ => continue,
        };
        for (number, line) in file.lines() {
            let comment = line.find(opener).map_or("", |start| &line[start..]);
            let in_code = MACROS.iter().filter(|word| file.is_rust() && line.contains(**word));
            let in_comment = WORDS.iter().filter(|word| has_word(comment, word));
            for word in in_code.chain(in_comment) {
                let message = format!("`{word}`: finish it, or write an issue and remove the mark");
                findings.push(TidyFinding::new(&file.path, number, message));
            }
        }
    }
}

/// Whether `word` stands in `text` with no letter before or after it; all-capital words are compared as they are.
fn has_word(text: &str, word: &str) -> bool {
    let marker = word.chars().all(|letter| letter.is_ascii_uppercase());
    let text = if marker { text.to_owned() } else { text.to_ascii_lowercase() };
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    #[test]
    fn marks_are_found_in_comments_and_macros_in_code() {
        let text = "let placeholder = 1; // fine\n// For now this is slow\ntodo!()\n// TODO: later\n// for nowhere\n";
        let found = run(check, &[("a.rs", text), ("b.md", "TODO"), (".ci/run", "x # FIXME")]);
        let places: Vec<_> = found.iter().map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(places, ["a.rs:2", "a.rs:3", "a.rs:4", ".ci/run:1"]);
    }
}
