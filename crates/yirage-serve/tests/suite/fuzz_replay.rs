//! The inputs of the server's fuzz targets, hand-made seeds and what campaigns found, run once by the ordinary tests. The
//! commands of a campaign are in `fuzz/README.md`.
#![allow(clippy::print_stdout)] // says what it ran

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use yirage_serve::{BodyVerdict, body_paths, read_body};

#[path = "../../../../fuzz/bodies/serve_body.rs"]
mod serve_body;
#[path = "../../../../fuzz/bodies/serve_form.rs"]
mod serve_form;
#[path = "../../../../fuzz/bodies/serve_schema.rs"]
mod serve_schema;

/// What a target does with its input.
type Body = fn(&[u8]);

const TARGETS: [(&str, Body); 3] =
    [("serve_body", serve_body::run), ("serve_form", serve_form::run), ("serve_schema", serve_schema::run)];

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

/// A campaign without a fuzzer: seeds with parts of others put in and bytes changed, for so many minutes.
#[test]
#[ignore = "takes the minutes that YIRAGE_FUZZ_MINUTES says, 30 else"]
fn changed_requests_end_in_a_verdict() {
    let minutes = std::env::var("YIRAGE_FUZZ_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(30_u64);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(minutes * 60);
    let kept = files(&fuzz().join("corpus/serve_schema"));
    let kept: Vec<Vec<u8>> = kept.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut chance = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from((state >> 11) % below as u64).unwrap()
    };
    let words = [
        "9223372036854775808",
        "-1e400",
        "0.5",
        "{}",
        "true",
        "null",
        "[]",
        "\"\"",
        "\"$ref\":\"#\",",
        "\"minimum\"",
        "\"not\"",
        "\"oneOf\"",
        "\"allOf\"",
        "\"pattern\"",
        "\"contains\"",
        "\"uniqueItems\"",
        "\"propertyNames\"",
        "\"const\"",
        "\"items\"",
        "\"integer\"",
    ];
    let signs = b"\"{}[]:,0-1e.\\ntf^$*+\xff";
    let mut count = 0_usize;
    while std::time::Instant::now() < end {
        let mut data = kept[chance(kept.len())].clone();
        for _ in 0..=chance(4) {
            let at = chance(data.len());
            match chance(4) {
                0 => data[at] = signs[chance(signs.len())],
                1 => drop(data.drain(at..(at + 1 + chance(6)).min(data.len()))),
                2 => drop(data.splice(at..(at + chance(8)).min(data.len()), words[chance(words.len())].bytes())),
                _ => {
                    let other = &kept[chance(kept.len())];
                    let from = chance(other.len());
                    let piece = &other[from..(from + 1 + chance(60)).min(other.len())];
                    drop(data.splice(at..at, piece.iter().copied()));
                }
            }
            if data.is_empty() {
                data.push(b'{');
            }
        }
        // What breaks it is the last line of the output.
        println!("{}", String::from_utf8_lossy(&data));
        serve_schema::run(&data);
        count += 1;
    }
    println!("{count} requests");
}

/// Mutations begin from bodies that parsers take: of each path there is one.
#[test]
fn every_path_has_a_seed_that_it_takes() {
    let mut taken = BTreeSet::new();
    for file in files(&fuzz().join("corpus/serve_body")) {
        let seed = std::fs::read_to_string(file).unwrap();
        let (path, body) = seed.split_once('\n').unwrap();
        if let Some(BodyVerdict::Taken { .. }) = read_body(path, body.as_bytes()) {
            taken.insert(path.to_owned());
        }
    }
    let paths: BTreeSet<String> = body_paths().map(str::to_owned).collect();
    assert_eq!(taken, paths);
}

#[test]
fn a_parser_says_what_the_server_would() {
    let refused = read_body("/v1/chat/completions", br#"{"messages": []}"#).unwrap();
    let BodyVerdict::Refused { status: 400, error } = &refused else { panic!("{refused:?}") };
    assert_eq!(error["error"]["param"], "messages");
    let refused = read_body("/v1/messages", b"{").unwrap();
    let BodyVerdict::Refused { status: 400, error } = &refused else { panic!("{refused:?}") };
    assert_eq!((&error["type"], &error["error"]["type"]), (&"error".into(), &"invalid_request_error".into()));
    let refused = read_body("/api/chat", br#"{"options": 3}"#).unwrap();
    let BodyVerdict::Refused { status: 400, error } = &refused else { panic!("{refused:?}") };
    assert!(error["error"].as_str().unwrap().contains("options"), "{error}");
    let taken = read_body("/v1/completions", br#"{"prompt": "a", "user": "u", "metadata": {"a": "b"}}"#);
    assert_eq!(taken, Some(BodyVerdict::Taken { ignored: vec!["metadata".into(), "user".into()] }));
    assert_eq!(read_body("/health", b"{}"), None);
}
