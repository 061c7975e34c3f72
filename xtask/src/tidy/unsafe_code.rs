//! `unsafe` lives in the crates that this file lists and nowhere else: every other library says so in its first lines.

use super::{RepoTree, TidyFinding};

/// The processor's instructions, mappings of files, vendors' libraries, signals, memory of several processes, pointers that two
/// languages share, CUDA, Vulkan below wgpu.
const UNSAFE: &[&str] = &[
    "yirage-cpu",
    "yirage-cpu-kernels",
    "yirage-mmap",
    "yirage-probe",
    "yirage-process",
    "yirage-comm",
    "yirage-collectives",
    "yirage-dlpack",
    "yirage-cuda",
    "yirage-npu",
    "yirage-plugin",
    "yirage-wgpu",
];

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let says_so = |text: &str| text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]");
    for file in tree.files.iter().filter(|file| !says_so(&file.text)) {
        let name = file.crate_name().filter(|name| file.path == format!("crates/{name}/src/lib.rs"));
        if name.is_some_and(|name| !UNSAFE.contains(&name)) {
            findings.push(TidyFinding::new(&file.path, 0, "lacks `#![forbid(unsafe_code)]`"));
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
            ("crates/yirage-ir/src/graph.rs", ""),
            ("crates/yirage-plan/src/lib.rs", "// #![forbid(unsafe_code)]\n"),
            ("crates/yirage-mmap/src/lib.rs", ""),
        ];
        assert_eq!(run(check, &files), ["crates/yirage-plan/src/lib.rs:0: lacks `#![forbid(unsafe_code)]`"]);
    }
}
