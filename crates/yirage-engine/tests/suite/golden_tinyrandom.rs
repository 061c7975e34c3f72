//! The tiny random models of every architecture against their golden files: `exact` on the CPU backend, from
//! safetensors and GGUF. Where weights are f32, `fast` must give the same bytes.
#![allow(clippy::print_stdout)] // says what it ran

use crate::golden_support::{all_logits, argmax, engine, floats, greedy, ids, json, options};
use std::path::{Path, PathBuf};
use yirage_engine::EngineOptions;
use yirage_ir::Format;
use yirage_plan::Precision;
use yirage_testkit::{absent, tiny};

/// The worst difference from the golden logits, in deviations of these; the same in both precisions where weights are f32.
fn check(folder: &Path, weights_are_f32: bool) -> f64 {
    let golden = json(&folder.join("golden.json"));
    let exact = EngineOptions { kv: Some(Format::F32), ..options(Precision::Exact) };
    let mut fast = weights_are_f32.then(|| engine(folder, &options(Precision::Fast)));
    let mut exact = engine(folder, &exact);
    let mut worst = 0f64;
    for case in golden["cases"].as_array().unwrap() {
        let prompt = ids(&case["ids"]);
        let rows = all_logits(&mut exact, &prompt);
        if let Some(fast) = &mut fast {
            assert_eq!(rows, all_logits(fast, &prompt), "{}: fast differs from exact", folder.display());
        }
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

fn check_all(folders: Vec<PathBuf>, weights_are_f32: bool) {
    assert!(folders.len() >= 16, "{} models", folders.len());
    for folder in folders {
        let (worst, model) = (check(&folder, weights_are_f32), folder.file_name().unwrap().display());
        println!("{model}: worst |dlogit| / std = {worst:.2e}");
        assert!(worst <= 1e-4, "{model}: {worst}");
    }
}

#[test]
fn every_architecture_equals_the_reference() {
    check_all(tiny::NAMES.iter().map(|name| tiny::model(name)).collect(), true);
}

/// Models as llama.cpp's own converter writes them, some of them with weights of 16 bits.
#[test]
fn gguf_of_every_converted_architecture_equals_the_reference() {
    let converted = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/converted");
    check_all(std::fs::read_dir(converted).unwrap().map(|e| e.unwrap().path()).collect(), false);
}

#[test]
#[ignore = "needs ../shared/tinyrandom"]
fn every_architecture_with_other_weights_equals_the_reference() {
    let entries = std::fs::read_dir(absent::shared("tinyrandom")).unwrap();
    check_all(entries.map(|e| e.unwrap().path()).filter(|f| f.join("golden.json").is_file()).collect(), true);
}
