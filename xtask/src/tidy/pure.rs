//! The IR, plans and the compiler are values and functions: no file, environment, thread, clock or connection.

use super::{RepoTree, TidyFinding};

const PURE: &[&str] = &["yirage-ir", "yirage-plan", "yirage-compile", "yirage-search", "yirage-scheduler"];
const IMPURE: &[&str] = &["std::env", "std::fs", "std::thread", "std::net", "std::process", "std::time"];

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    for file in tree.files.iter().filter(|file| file.is_rust() && file.path.contains("/src/")) {
        if !file.crate_name().is_some_and(|name| PURE.contains(&name)) {
            continue;
        }
        for (number, line) in file.lines() {
            for module in IMPURE.iter().filter(|module| line.contains(**module)) {
                let message = format!("`{module}` in a pure crate: take what it would give as an argument");
                findings.push(TidyFinding::new(&file.path, number, message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    #[test]
    fn sources_are_checked_and_tests_folders_are_not() {
        let text = "use std::fmt;\nuse std::fs;\n";
        let found = run(check, &[("crates/yirage-plan/src/a.rs", text), ("crates/yirage-plan/tests/a.rs", text)]);
        let message = "`std::fs` in a pure crate: take what it would give as an argument";
        assert_eq!(found, [format!("crates/yirage-plan/src/a.rs:2: {message}")]);
    }
}
