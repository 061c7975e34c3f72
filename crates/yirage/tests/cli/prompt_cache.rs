//! `--prompt-cache`: a prompt that was computed by another process is not computed again, and changes nothing.

use crate::support::{bedtime, yirage};
use serde_json::Value;
use std::path::Path;

const LONG: &str = "Once upon a time there was a little bear who lived in the deep forest with his mother and his father, and every \
                    day he went to the river to look at the fish and the birds and the stones that were as old as the hills.";

fn ran(model: &str, file: &Path, prompt: &str, more: &[&str]) -> (Value, String) {
    let base = ["run", "-m", model, "--json", "-p", prompt, "-n", "24", "--temperature", "0", "--prompt-cache"];
    let ran = yirage(&[&base[..], &[file.to_str().unwrap()], more].concat()).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    (serde_json::from_str(&ran.out).unwrap(), ran.err)
}

/// The effect of `--prompt-cache`.
pub(crate) fn kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bear.kv");
    let (first, said) = ran(&bedtime(), &file, LONG, &[]);
    assert!(first["cached_tokens"].is_null() && said.contains("positions are kept"), "{said}");
    let (again, said) = ran(&bedtime(), &file, LONG, &[]);
    assert!(again["cached_tokens"].as_u64().unwrap() >= 32 && said.contains("computed before"), "{said}");
    assert_eq!(again["tokens"], first["tokens"]);
}

/// The effect of `--prompt-cache-ro`.
pub(crate) fn read_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bear.kv");
    let (_, said) = ran(&bedtime(), &file, LONG, &["--prompt-cache-ro"]);
    assert!(!file.exists() && !said.contains("kept"), "{said}");
    ran(&bedtime(), &file, LONG, &[]);
    let before = std::fs::read(&file).unwrap();
    ran(&bedtime(), &file, "In a town by the sea", &["--prompt-cache-ro"]);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let alone = yirage(&["run", "-m", &bedtime(), "-p", "a", "-n", "1", "--prompt-cache-ro"]).ran();
    assert!(alone.code == 0 && alone.err.contains("--prompt-cache-ro is not used"), "{}", alone.err);
}

#[test]
fn a_file_of_something_else_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bear.kv");
    ran(&bedtime(), &file, LONG, &[]);
    let whole = std::fs::read(&file).unwrap();
    let mut spoilt = whole.clone();
    let middle = spoilt.len() - 100;
    spoilt[middle] ^= 1;
    for (what, contents, expected) in [
        ("other bytes", b"no cache of any kind".to_vec(), "begins with other bytes"),
        ("a part", whole[..whole.len() - 1].to_vec(), "bytes by its header"),
        ("a bit that is another", spoilt, "checksum"),
    ] {
        std::fs::write(&file, &contents).unwrap();
        let base = ["run", "-m", &bedtime(), "-p", LONG, "-n", "2", "--prompt-cache", file.to_str().unwrap()];
        let ran = yirage(&base).ran();
        assert!(ran.code == 1 && ran.err.contains(expected) && ran.err.contains("bear.kv"), "{what}: {}", ran.err);
        assert_eq!(std::fs::read(&file).unwrap(), contents, "{what}");
    }
    let nowhere = ["run", "-m", &bedtime(), "-p", LONG, "-n", "2", "--prompt-cache", "/nowhere/bear.kv"];
    let ran = yirage(&nowhere).ran();
    assert!(ran.code == 2 && ran.out.is_empty() && ran.err.contains("make /nowhere first"), "{}", ran.err);
    std::fs::write(&file, &whole).unwrap();
    let other = ["run", "-m", &bedtime(), "-p", LONG, "-n", "2", "--precision", "exact", "--kv-type", "bf16"];
    let ran = yirage(&[&other[..], &["--prompt-cache", file.to_str().unwrap()]].concat()).ran();
    assert!(ran.code == 1 && ran.err.contains("expected what the model"), "{}", ran.err);
}
