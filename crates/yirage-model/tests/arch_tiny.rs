//! Shapes and options that the larger fixtures lack, against logits of the reference implementation; made by
//! `tools/oracle/make_tiny.py`. The GGUF files are written by the `gguf` package.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod arch_support;

use arch_support::{check_golden, tiny};

fn check_all(kind: &str, count: usize) {
    let list = tiny(kind);
    assert_eq!(list.len(), count);
    let failures: Vec<String> = list
        .iter()
        .filter_map(|f| check_golden(f).err().map(|e| format!("{}: {e}", f.file_name().unwrap().display())))
        .collect();
    assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn safetensors_of_other_shapes_agree_with_the_reference() {
    check_all("safetensors", 20);
}

#[test]
fn gguf_files_agree_with_the_reference() {
    check_all("gguf", 10);
}
