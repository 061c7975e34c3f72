//! No text names a folder of the machine it was written on.

use super::{RepoTree, TidyFinding};

/// This file has to spell the prefixes it looks for.
const ITSELF: &str = "xtask/src/tidy/paths.rs";
const PREFIXES: &[&str] = &["/work/", "/root/", "/home/", "/Users/", "C:\\Users"];

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    for file in tree.files.iter().filter(|file| file.path != ITSELF) {
        for (number, line) in file.lines() {
            for prefix in PREFIXES.iter().filter(|prefix| starts_a_path(line, prefix)) {
                let message = format!("`{prefix}…` exists on one machine only: write it relative to the repository");
                findings.push(TidyFinding::new(&file.path, number, message));
            }
        }
    }
}

/// Whether `prefix` starts a path in `line`: `a/work/b` is a relative path and fine.
fn starts_a_path(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || "._-*>}".contains(letter))
    })
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    #[test]
    fn absolute_paths_only() {
        let text = "let a = \"/home/me/x\";\nlet b = \"at/work/x\";\nlet c = \"../home/x\";\n";
        let found = run(check, &[("a.rs", text)]);
        assert_eq!(found, ["a.rs:1: `/home/…` exists on one machine only: write it relative to the repository"]);
    }
}
