//! Device-free crates name no vendor: a word for one kind of hardware there would be the start of a special case.

use super::{RepoTree, TidyFinding};

const DEVICE_FREE: &[&str] = &["yirage-ir", "yirage-plan", "yirage-compile", "yirage-engine", "yirage-model"];
const VENDORS: &[&str] = &["cuda", "hip", "metal", "vulkan", "musa", "maca", "ascend", "cambricon"];

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let files = tree.files.iter().filter(|file| file.crate_name().is_some_and(|name| DEVICE_FREE.contains(&name)));
    for file in files.filter(|file| file.is_rust()) {
        for (number, line) in file.lines() {
            for word in line.split(|letter: char| !letter.is_ascii_alphanumeric()) {
                if VENDORS.contains(&word.to_ascii_lowercase().as_str()) && !is_the_verb(word, line) {
                    let message =
                        format!("vendor word `{word}`: hardware has a place in backends and target facts only");
                    findings.push(TidyFinding::new(&file.path, number, message));
                }
            }
        }
    }
}

/// In a comment, lower-case "ascend" is English.
fn is_the_verb(word: &str, line: &str) -> bool {
    word == "ascend" && line.trim_start().starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    #[test]
    fn whole_words_in_device_free_crates() {
        let text = "fn ascending() {}\n// numbers ascend\nlet cuda_graph = 1;\n// for Ascend\n";
        let found = run(check, &[("crates/yirage-ir/src/a.rs", text), ("crates/yirage-cpu/src/a.rs", text)]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/yirage-ir/src/a.rs:3: vendor word `cuda`"));
        assert!(found[1].starts_with("crates/yirage-ir/src/a.rs:4: vendor word `Ascend`"));
    }
}
