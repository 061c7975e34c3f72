//! Every architecture against logits of the reference implementation, on tiny models with random weights.

use crate::arch_support::check_golden;
use std::path::PathBuf;
use yirage_testkit::{absent, tiny};

fn check(folders: &[PathBuf]) {
    assert!(folders.len() >= 16, "{} models", folders.len());
    let failures: Vec<String> =
        folders.iter().filter_map(|f| check_golden(f).err().map(|e| format!("{}: {e}", f.display()))).collect();
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), folders.len(), failures.join("\n"));
}

#[test]
fn every_architecture_agrees_with_the_reference() {
    check(&tiny::NAMES.iter().map(|name| tiny::model(name)).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs ../shared/tinyrandom"]
fn other_weights_agree_with_the_reference() {
    let entries = std::fs::read_dir(absent::shared("tinyrandom")).unwrap();
    let mut folders: Vec<_> = entries.map(|e| e.unwrap().path()).filter(|f| f.join("golden.json").is_file()).collect();
    folders.sort();
    check(&folders);
}
