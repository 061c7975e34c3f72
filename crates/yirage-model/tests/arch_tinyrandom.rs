//! Every architecture against logits of the reference implementation, on tiny models with random weights.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod arch_support;

use arch_support::{check_golden, shared};

fn check_folder(folder: &std::path::Path, want: usize) {
    let mut folders: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    folders.retain(|f| f.join("golden.json").is_file());
    folders.sort();
    assert!(folders.len() >= want, "{} models in {}", folders.len(), folder.display());
    let failures: Vec<String> = folders
        .iter()
        .filter_map(|f| check_golden(f).err().map(|e| format!("{}: {e}", f.file_name().unwrap().display())))
        .collect();
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), folders.len(), failures.join("\n"));
}

#[test]
fn sixteen_architectures_agree_with_the_reference() {
    if let Some(folder) = shared("tinyrandom") {
        check_folder(&folder, 16);
    }
}
