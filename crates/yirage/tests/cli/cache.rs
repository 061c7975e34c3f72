//! `yirage cache`, and what its options change.

use crate::support::{Run, bedtime, keys, yirage};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::{TempDir, tempdir};

/// A folder for entries inside a folder of the test's own.
pub(crate) struct Kept(TempDir);

impl Kept {
    pub(crate) fn new() -> Kept {
        Kept(tempdir().unwrap())
    }

    pub(crate) fn folder(&self) -> String {
        self.0.path().join("packed").to_str().unwrap().to_owned()
    }

    pub(crate) fn run(&self, model: &str, more: &[&str]) -> Run {
        let folder = self.folder();
        let run = ["run", "--model", model, "--max-tokens", "2", "--temperature", "0", "--weight-cache"];
        yirage(&[&run[..], &["--weight-cache-dir", &folder, "--log-level", "debug"], more].concat())
    }

    fn cache(&self, action: &str) -> Run {
        yirage(&["cache", action, "--json", "--weight-cache-dir", &self.folder()])
    }

    pub(crate) fn entries(&self) -> Vec<Value> {
        self.cache("list").json()["entries"].as_array().unwrap().clone()
    }
}

#[test]
fn the_second_start_maps_what_the_first_kept() {
    let model = bedtime();
    let kept = Kept::new();
    assert_eq!(kept.entries(), Vec::<Value>::new());
    let first = kept.run(&model, &[]).ran();
    assert!(first.code == 0 && first.err.contains("packed_weights=None"), "{}", first.err);
    let entries = kept.entries();
    assert_eq!(entries.len(), 1);
    assert_eq!(keys(&entries[0]), ["key", "path", "bytes", "used", "source", "weights", "device"]);
    let source = &entries[0]["source"][0];
    assert!(source["path"].as_str().unwrap().ends_with(".gguf") && source["unchanged"] == true);
    let second = kept.run(&model, &[]).ran();
    assert!(second.err.contains("packed_weights=Some("), "{}", second.err);
    assert_eq!(first.out, second.out);
    assert_eq!(kept.entries().len(), 1);
    let plans = |err: &str| {
        let word = |name: &str| err.split_whitespace().find_map(|word| word.strip_prefix(name)).unwrap().to_owned();
        (word("plans_compiled="), word("plans_read="))
    };
    let (compiled, read) = plans(&first.err);
    assert_eq!((read.as_str(), plans(&second.err)), ("0", ("0".into(), compiled)), "{}", second.err);
    assert_eq!(kept.cache("list").json()["foreign"], serde_json::json!([]));
    let text = yirage(&["cache", "list", "--weight-cache-dir", &kept.folder()]).ran();
    assert!(text.out.contains(entries[0]["key"].as_str().unwrap()) && text.out.contains("just now"), "{}", text.out);
}

/// What devices have compiled is counted by itself, and goes with the rest.
#[test]
fn compiled_kernels_are_listed_and_cleared() {
    let kept = Kept::new();
    let texts = Path::new(&kept.folder()).join("texts");
    fs::create_dir_all(&texts).unwrap();
    for (id, ending) in [("1", "code"), ("2", "code"), ("3", "pipelines"), ("4", "txt")] {
        fs::write(texts.join(format!("{id:0>32}.{ending}")), "12345").unwrap();
    }
    fs::write(texts.join("mine.code"), "").unwrap();
    let listed = kept.cache("list").json();
    assert_eq!(listed["compiled_kernels"], serde_json::json!({"files": 3, "bytes": 15}));
    let text = yirage(&["cache", "list", "--weight-cache-dir", &kept.folder()]).ran().out;
    assert!(text.contains("compiled kernels: 3 files, 15 B"), "{text}");
    let cleared = kept.cache("clear").json();
    assert_eq!((&cleared["files"], &cleared["bytes"]), (&3.into(), &15.into()));
    assert!(texts.join("mine.code").exists() && kept.cache("list").json()["compiled_kernels"]["files"] == 0);
}

#[test]
fn verify_finds_and_removes_damage_and_clear_removes_all() {
    let model = bedtime();
    let kept = Kept::new();
    kept.run(&model, &[]).ran();
    let verified = kept.cache("verify").json();
    assert!(verified["entries"][0]["ok"] == true && verified["removed"] == 0, "{verified}");
    let path = kept.entries()[0]["path"].as_str().unwrap().to_owned();
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let ran = kept.cache("verify").ran();
    assert_eq!(ran.code, 1, "{}", ran.err);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(found["entries"][0]["ok"] == false && found["removed"] == 1, "{found}");
    assert!(found["entries"][0]["error"].as_str().unwrap().contains("damaged on disk"), "{found}");
    assert!(!Path::new(&path).exists());
    kept.run(&model, &[]).ran();
    let cleared = kept.cache("clear").json();
    // The entry, and the plans beside it.
    assert!(cleared["files"].as_u64().unwrap() > 1 && cleared["bytes"].as_u64().unwrap() > 100_000, "{cleared}");
    assert_eq!(kept.entries(), Vec::<Value>::new());
    assert_eq!(kept.cache("clear").json()["files"], 0);
    assert!(!Path::new(&kept.folder()).join("texts").exists());
}

#[test]
fn whatever_else_lies_in_the_folder_is_named_and_left_alone() {
    let model = bedtime();
    let kept = Kept::new();
    kept.run(&model, &[]).ran();
    let entry = kept.entries()[0]["path"].as_str().unwrap().to_owned();
    let letter = Path::new(&entry).with_file_name(format!("{}.packed", "0".repeat(32)));
    fs::write(&letter, "dear\u{1b}[2Jdiary").unwrap();
    let odd = letter.with_file_name("red\u{1b}[31m");
    fs::write(&odd, "").unwrap();
    for action in ["list", "verify", "clear"] {
        let found = kept.cache(action).json();
        let names: Vec<&str> = found["foreign"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
        assert_eq!(names, [letter.to_str().unwrap(), odd.to_str().unwrap()], "{action}");
        let text = yirage(&["cache", action, "--weight-cache-dir", &kept.folder()]).ran();
        assert_eq!(text.err.matches("not written by yirage, left alone").count(), 2, "{}", text.err);
        assert!(!text.err.contains('\u{1b}'), "{:?}", text.err);
    }
    assert!(!Path::new(&entry).exists() && fs::read_to_string(&letter).unwrap().starts_with("dear") && odd.exists());
}

#[test]
fn a_damaged_head_and_a_full_cache_are_notes() {
    let model = bedtime();
    let kept = Kept::new();
    kept.run(&model, &[]).ran();
    let path = kept.entries()[0]["path"].as_str().unwrap().to_owned();
    // What says that it is ours, and nothing of what an entry goes on with.
    let ours = fs::read(&path).unwrap()[..8].to_vec();
    fs::write(&path, [&ours[..], b"nonsense"].concat()).unwrap();
    let listed = kept.entries();
    assert!(listed[0]["error"].as_str().unwrap().contains("head: expected"), "{listed:?}");
    let ran = kept.run(&model, &[]).ran();
    assert!(ran.code == 0 && ran.err.contains("repacked weights were made again"), "{}", ran.err);
    assert_eq!(kept.entries()[0].get("error"), None);
    let ran = kept.run(&model, &["--quiet", "--weight-cache-limit", "0", "--model", &model]).ran();
    assert_eq!(ran.code, 0);
}

#[test]
fn wrong_words_are_wrong_usage() {
    for arguments in [
        &["cache"] as &[&str],
        &["cache", "shrink"],
        &["cache", "list", "--weight-cache-limit", "1"],
        &["run", "--weight-cache-limit", "-1"],
        &["run", "--weight-cache-limit", "much"],
        &["run", "--weight-cache-limit", "NaN"],
        &["run", "--weight-cache-dir", ""],
        &["cache", "clear", "--weight-cache-dir", " "],
    ] {
        let ran = yirage(arguments).ran();
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.err);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let ran = yirage(&["cache", "list", "--weight-cache-dir", file.path().to_str().unwrap()]).ran();
    assert!(ran.code == 1 && ran.err.contains("cannot read the folder"), "{}", ran.err);
}

#[test]
fn the_default_folder_lies_beside_the_models() {
    let home = tempdir().unwrap();
    let listed = yirage(&["cache", "list", "--json"]).env("HF_HOME", home.path().to_str().unwrap()).json();
    assert_eq!(listed["folder"].as_str().unwrap(), home.path().join("yirage-packed").to_str().unwrap());
}
