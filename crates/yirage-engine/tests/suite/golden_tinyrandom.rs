//! The tiny random models of every architecture against their golden files: `exact` on the CPU backend, from
//! safetensors. Weights are f32, so `fast` must give the same bytes.
#![allow(clippy::print_stdout)] // says what it ran

use crate::golden_support::{all_logits, argmax, engine, floats, greedy, ids, json, options};
use std::path::{Path, PathBuf};
use yirage_engine::EngineOptions;
use yirage_ir::Format;
use yirage_plan::Precision;
use yirage_testkit::{absent, tiny};

fn check(folder: &Path) -> f64 {
    let golden = json(&folder.join("golden.json"));
    let exact = EngineOptions { kv: Some(Format::F32), ..options(Precision::Exact) };
    let fast = options(Precision::Fast);
    let (mut exact, mut fast) = (engine(folder, &exact), engine(folder, &fast));
    let mut worst = 0f64;
    for case in golden["cases"].as_array().unwrap() {
        let prompt = ids(&case["ids"]);
        let rows = all_logits(&mut exact, &prompt);
        assert_eq!(rows, all_logits(&mut fast, &prompt), "{}: fast differs from exact", folder.display());
        let argmaxes: Vec<u32> = rows.iter().map(|r| argmax(r)).collect();
        assert_eq!(argmaxes, ids(&case["argmax_each_pos"]), "{}", folder.display());
        let (last, want) = (&rows[rows.len() - 1], floats(&case["last_logits"]));
        let std = case["std"].as_f64().unwrap();
        for (got, want) in last.iter().zip(want) {
            worst = worst.max((f64::from(*got) - want).abs() / std);
        }
        let tokens = ids(&case["greedy16"]);
        assert_eq!(greedy(&mut exact, &prompt, tokens.len()), tokens, "{}", folder.display());
    }
    worst
}

fn check_all(folders: Vec<PathBuf>) {
    assert!(folders.len() >= 16, "{} models", folders.len());
    for folder in folders {
        let (worst, model) = (check(&folder), folder.file_name().unwrap().display());
        println!("{model}: worst |dlogit| / std = {worst:.2e}");
        assert!(worst <= 1e-4, "{model}: {worst}");
    }
}

#[test]
fn every_architecture_equals_the_reference() {
    check_all(tiny::NAMES.iter().map(|name| tiny::model(name)).collect());
}

/// The same models as llama.cpp's own converter writes them.
#[test]
fn gguf_of_every_converted_architecture_equals_the_reference() {
    let converted = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/converted");
    check_all(std::fs::read_dir(converted).unwrap().map(|e| e.unwrap().path()).collect());
}

#[test]
#[ignore = "needs ../shared/tinyrandom"]
fn every_architecture_with_other_weights_equals_the_reference() {
    let entries = std::fs::read_dir(absent::shared("tinyrandom")).unwrap();
    check_all(entries.map(|e| e.unwrap().path()).filter(|f| f.join("golden.json").is_file()).collect());
}
