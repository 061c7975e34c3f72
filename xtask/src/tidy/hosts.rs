//! The hub's address is one constant in one file, so that a mirror is one setting away.

use super::{RepoTree, TidyFinding};

/// This file has to spell the name it looks for.
const ITSELF: &str = "xtask/src/tidy/hosts.rs";
/// The one file that may hold it.
const HOME: &str = "crates/yirage-hub/src/env.rs";
const HOST: &str = "huggingface.co";

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    for file in tree.files.iter().filter(|file| file.is_rust() && file.path != ITSELF && file.path != HOME) {
        for (number, _) in file.lines().filter(|(_, line)| line.contains(HOST)) {
            findings.push(TidyFinding::new(
                &file.path,
                number,
                format!("names the hub's host: use the constant in {HOME}"),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::{HOME, check};

    #[test]
    fn the_address_stands_once() {
        let line = "const A: &str = \"https://huggingface.co\";";
        let found = run(check, &[(HOME, line), ("crates/yirage/src/main.rs", line)]);
        assert_eq!(found, [format!("crates/yirage/src/main.rs:1: names the hub's host: use the constant in {HOME}")]);
    }
}
