//! Real GGUF models in the folder that `YIRAGE_MODELS` names: the scalar reference on the first golden prompt.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod arch_support;

use arch_support::{Runner, argmax, shared};
use serde_json::Value;
use std::path::PathBuf;

fn model(file: &str) -> Option<PathBuf> {
    let path = std::env::var_os("YIRAGE_MODELS").map(|folder| PathBuf::from(folder).join(file));
    let path = path.filter(|p| p.is_file());
    if path.is_none() {
        eprintln!("SKIPPED: no {file} in the folder YIRAGE_MODELS");
    }
    path
}

fn check_first_step(file: &str, golden: &str) {
    let (Some(model), Some(golden)) = (model(file), shared(golden)) else { return };
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let case = &golden["cases"][0];
    let ints = |v: &Value| v.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect::<Vec<_>>();
    let (prompt, step) = (ints(&case["prompt_ids"]), &case["steps"][0]);
    let mut runner = Runner::new(&model, 64).unwrap();
    let logits = runner.step(&prompt, &[prompt.len() - 1]).remove(0);
    for (id, value) in ints(&step["top10_ids"]).into_iter().zip(step["top10_logits"].as_array().unwrap()) {
        let d = (f64::from(logits[id as usize]) - value.as_f64().unwrap()).abs();
        assert!(d <= 2e-3, "{file}: logit {id} is off by {d}");
    }
    assert_eq!(argmax(&logits) as u32, ints(&case["greedy_ids"])[0]);
}

#[test]
fn gemma3_in_mixed_block_formats() {
    check_first_step("gemma-3-270m-q4_k_m.gguf", "golden/gemma.json");
}

#[test]
fn smollm2_in_q4_1() {
    check_first_step("smollm2-135m-instruct-q4_1.gguf", "golden/smollm2.json");
}

#[test]
fn qwen2_builds_and_binds_every_weight() {
    let Some(path) = model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf") else { return };
    let (checkpoint, model) = arch_support::load(&path, 16).unwrap();
    yirage_ir::verify(&model.graph).unwrap();
    assert!(model.weights.iter().all(|w| w.check(&checkpoint).is_ok()));
    assert!(model.weights.iter().any(|w| w.name == "l0.q.b"));
}
