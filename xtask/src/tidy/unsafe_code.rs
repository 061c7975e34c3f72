//! `unsafe` lives in backends, in `yirage-mmap`, `yirage-probe`, `yirage-process`, `yirage-dlpack` and nowhere else: the other
//! crates say so in their first lines.

use super::{RepoTree, TidyFinding};

const SAFE: &[&str] = &[
    "yirage-ir",
    "yirage-plan",
    "yirage-hal",
    "yirage-registry",
    "yirage-advisor",
    "yirage-explain",
    "yirage-compile",
    "yirage-model",
    "yirage-hub",
    "yirage-engine",
    "yirage-python",
    "yirage-conformance",
    "yirage-testkit",
];

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    for name in SAFE {
        let path = format!("crates/{name}/src/lib.rs");
        let says_so = |text: &str| text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]");
        if tree.file(&path).is_some_and(|file| !says_so(&file.text)) {
            findings.push(TidyFinding::new(&path, 0, "lacks `#![forbid(unsafe_code)]`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    #[test]
    fn the_attribute_is_asked_for_where_it_belongs() {
        let files = [
            ("crates/yirage-ir/src/lib.rs", "//! doc\n#![forbid(unsafe_code)]\n"),
            ("crates/yirage-plan/src/lib.rs", "// #![forbid(unsafe_code)]\n"),
            ("crates/yirage-mmap/src/lib.rs", ""),
        ];
        assert_eq!(run(check, &files), ["crates/yirage-plan/src/lib.rs:0: lacks `#![forbid(unsafe_code)]`"]);
    }
}
