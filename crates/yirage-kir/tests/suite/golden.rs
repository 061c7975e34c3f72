//! Three kernels of yirage-kernels, frozen as their text, in every language that kernels are printed in: byte by byte.

use std::fs;
use std::path::{Path, PathBuf};
use yirage_kir::render::{CDialect, wgsl};
use yirage_kir::text::{parse, print};
use yirage_kir::{ComputeKernel, verify};

/// A mean of squares, a product with a weight of Q4_0, and a token drawn from logits.
const NAMES: [&str; 3] = ["reduce", "matmul", "sample"];

/// Set to write the files anew.
const WRITE: &str = "YIRAGE_WRITE_GOLDEN";

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)
}

fn kernel(name: &str) -> ComputeKernel {
    let text = fs::read_to_string(path(&format!("{name}.kir"))).unwrap();
    let kernel = parse(&text).unwrap().remove(0);
    assert_eq!(verify(&kernel), Ok(()), "{name}");
    assert_eq!(print(&kernel), text, "{name}");
    kernel
}

/// Whether a file has this text; writes it where that is wanted.
fn is_golden(file: &str, text: &str) -> bool {
    let path = path(file);
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, text).unwrap();
    }
    fs::read_to_string(&path).is_ok_and(|golden| golden == text)
}

#[test]
fn three_kernels_are_the_same_text_in_every_language() {
    let mut others = Vec::new();
    for name in NAMES {
        let kernel = kernel(name);
        let dialects = CDialect::ALL.map(|dialect| (dialect.name, dialect.source(std::slice::from_ref(&kernel))));
        for (language, text) in dialects.into_iter().chain([("wgsl", wgsl(&kernel))]) {
            let file = format!("{name}.{language}");
            if !is_golden(&file, &text) {
                others.push(file);
            }
        }
    }
    assert!(
        others.is_empty(),
        "other text than in tests/golden: {others:?}; if that is meant, write them anew with \
         `{WRITE}=1 cargo test -p yirage-kir golden::` and look at what changed"
    );
}
