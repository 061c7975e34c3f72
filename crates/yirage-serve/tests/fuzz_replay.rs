//! The inputs of the server's fuzz targets, hand-made seeds and what campaigns found, run once by the ordinary tests. The
//! commands of a campaign are in `fuzz/README.md`.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything, and says what it ran

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use yirage_serve::{Verdict, body_paths, read_body};

#[path = "../../../fuzz/bodies/serve_body.rs"]
mod serve_body;
#[path = "../../../fuzz/bodies/serve_form.rs"]
mod serve_form;

/// What a target does with its input.
type Body = fn(&[u8]);

const TARGETS: [(&str, Body); 2] = [("serve_body", serve_body::run), ("serve_form", serve_form::run)];

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_kept_input_ends_in_a_verdict() {
    for (name, run) in TARGETS {
        let seeds = files(&fuzz().join("corpus").join(name));
        let found = files(&fuzz().join("found").join(name));
        assert!(!seeds.is_empty() && !found.is_empty(), "{name} has no inputs");
        seeds.iter().chain(&found).for_each(|file| run(&std::fs::read(file).unwrap()));
        println!("{name}: {} seeds, {} found inputs", seeds.len(), found.len());
    }
}

#[test]
fn every_target_of_the_server_is_replayed() {
    let stem = |p: &PathBuf| p.file_stem().unwrap().to_string_lossy().into_owned();
    let targets = files(&fuzz().join("fuzz_targets"));
    let targets: Vec<String> = targets.iter().map(stem).filter(|name| name.starts_with("serve_")).collect();
    assert_eq!(targets, TARGETS.map(|(name, _)| name.to_owned()));
}

/// Mutations begin from bodies that parsers take: of each path there is one.
#[test]
fn every_path_has_a_seed_that_it_takes() {
    let mut taken = BTreeSet::new();
    for file in files(&fuzz().join("corpus/serve_body")) {
        let seed = std::fs::read_to_string(file).unwrap();
        let (path, body) = seed.split_once('\n').unwrap();
        if let Some(Verdict::Taken { .. }) = read_body(path, body.as_bytes()) {
            taken.insert(path.to_owned());
        }
    }
    let paths: BTreeSet<String> = body_paths().map(str::to_owned).collect();
    assert_eq!(taken, paths);
}

#[test]
fn a_parser_says_what_the_server_would() {
    let refused = read_body("/v1/chat/completions", br#"{"messages": []}"#).unwrap();
    let Verdict::Refused { status: 400, error } = &refused else { panic!("{refused:?}") };
    assert_eq!(error["error"]["param"], "messages");
    let refused = read_body("/v1/messages", b"{").unwrap();
    let Verdict::Refused { status: 400, error } = &refused else { panic!("{refused:?}") };
    assert_eq!((&error["type"], &error["error"]["type"]), (&"error".into(), &"invalid_request_error".into()));
    let refused = read_body("/api/chat", br#"{"options": 3}"#).unwrap();
    let Verdict::Refused { status: 400, error } = &refused else { panic!("{refused:?}") };
    assert!(error["error"].as_str().unwrap().contains("options"), "{error}");
    let taken = read_body("/v1/completions", br#"{"prompt": "a", "user": "u", "metadata": {}}"#);
    assert_eq!(taken, Some(Verdict::Taken { ignored: vec!["metadata".into(), "user".into()] }));
    assert_eq!(read_body("/health", b"{}"), None);
}
