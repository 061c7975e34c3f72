//! The fuzz targets' inputs, hand-made seeds and what campaigns found, run once by the ordinary tests. The commands of a
//! campaign and its results are in `fuzz/README.md`.
#![allow(clippy::print_stdout)] // says what it ran

use std::path::{Path, PathBuf};

#[path = "../../../../fuzz/bodies/chat_template.rs"]
mod chat_template;
#[path = "../../../../fuzz/bodies/config_json.rs"]
mod config_json;
#[path = "../../../../fuzz/bodies/gguf.rs"]
mod gguf;
#[path = "../../../../fuzz/bodies/graph_json.rs"]
mod graph_json;
#[path = "../../../../fuzz/bodies/graph_text.rs"]
mod graph_text;
#[path = "../../../../fuzz/bodies/npy.rs"]
mod npy;
#[path = "../../../../fuzz/bodies/packed_header.rs"]
mod packed_header;
#[path = "../../../../fuzz/bodies/plan_file.rs"]
mod plan_file;
#[path = "../../../../fuzz/bodies/plan_text.rs"]
mod plan_text;
#[path = "../../../../fuzz/bodies/random_graph.rs"]
mod random_graph;
#[path = "../../../../fuzz/bodies/safetensors.rs"]
mod safetensors;
#[path = "../../../../fuzz/bodies/tokenizer_json.rs"]
mod tokenizer_json;

/// What a target does with its input.
type Body = fn(&[u8]);

const TARGETS: [(&str, Body); 12] = [
    ("chat_template", chat_template::run),
    ("config_json", config_json::run),
    ("gguf", gguf::run),
    ("graph_json", graph_json::run),
    ("graph_text", graph_text::run),
    ("npy", npy::run),
    ("packed_header", packed_header::run),
    ("plan_file", plan_file::run),
    ("plan_text", plan_text::run),
    ("random_graph", random_graph::run),
    ("safetensors", safetensors::run),
    ("tokenizer_json", tokenizer_json::run),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_kept_input_ends_in_a_value_or_a_typed_error() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    for (name, run) in TARGETS {
        let seeds = files(&root.join("corpus").join(name));
        let found = files(&root.join("found").join(name));
        assert!(!seeds.is_empty() && !found.is_empty(), "{name} has no inputs");
        seeds.iter().chain(&found).for_each(|file| run(&std::fs::read(file).unwrap()));
        println!("{name}: {} seeds, {} found inputs", seeds.len(), found.len());
    }
}

#[test]
fn every_target_is_replayed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let stem = |p: &PathBuf| p.file_stem().unwrap().to_string_lossy().into_owned();
    let targets = files(&root.join("fuzz_targets")).into_iter().map(|file| stem(&file));
    // Those of the server are replayed beside it.
    let targets: Vec<String> = targets.filter(|name| !name.starts_with("serve_")).collect();
    assert_eq!(targets, TARGETS.map(|(name, _)| name.to_owned()));
}
