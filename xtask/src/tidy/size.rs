//! A Rust file fits a reader's head: 800 lines at most.

use super::{RepoTree, TidyFinding};

const MAX_LINES: usize = 800;

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        let lines = file.text.lines().count();
        if lines > MAX_LINES {
            let message = format!("{lines} lines, more than {MAX_LINES}: split it by what its parts are");
            findings.push(TidyFinding::new(&file.path, 0, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    #[test]
    fn the_limit_is_on_rust_only_and_inclusive() {
        let (fits, long) = ("//\n".repeat(800), "//\n".repeat(801));
        assert!(run(check, &[("a.rs", &fits), ("b.md", &long)]).is_empty());
        assert_eq!(
            run(check, &[("a.rs", &long)]),
            ["a.rs:0: 801 lines, more than 800: split it by what its parts are"]
        );
    }
}
