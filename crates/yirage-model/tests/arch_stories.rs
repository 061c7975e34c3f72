//! A real model of 260,000 parameters, from GGUF (f32 and Q8_0) and from safetensors, against its golden file.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod arch_support;

use arch_support::{Runner, argmax, shared};
use serde_json::Value;
use std::path::Path;
use yirage_model::arch::CacheGroup;

fn ints(v: &Value) -> Vec<u32> {
    v.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

/// Greedy steps of every case: exact tokens, the top ten logits within `bound`.
fn check(model: &Path, golden: &Path, bound: f64) {
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let mut runner = Runner::new(model, 1024).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let (prompt, greedy) = (ints(&case["prompt_ids"]), ints(&case["greedy_ids"]));
        runner.reset();
        let mut logits = runner.step(&prompt, &[prompt.len() - 1]).remove(0);
        for (step, &want) in case["steps"].as_array().unwrap().iter().zip(&greedy) {
            let pairs = ints(&step["top10_ids"]).into_iter().zip(step["top10_logits"].as_array().unwrap());
            for (id, value) in pairs {
                let d = (f64::from(logits[id as usize]) - value.as_f64().unwrap()).abs();
                assert!(d <= bound, "{} step {}: logit {id} is off by {d}", case["id"], step["step"]);
            }
            assert_eq!(argmax(&logits) as u32, want, "{} step {}", case["id"], step["step"]);
            logits = runner.step(&[want], &[0]).remove(0);
        }
    }
}

#[test]
fn f32_gguf_is_exact() {
    if let (Some(model), Some(golden)) =
        (shared("models/stories260K/stories260K-f32.gguf"), shared("golden/stories.json"))
    {
        check(&model, &golden, 1e-3);
    }
}

#[test]
fn safetensors_are_exact() {
    if let (Some(model), Some(golden)) = (shared("models/stories260K/hf"), shared("golden/stories.json")) {
        check(&model, &golden, 1e-3);
    }
}

#[test]
fn q8_gguf_builds_with_quantised_weights_and_one_cache_group() {
    let Some(path) = shared("models/stories260K/stories260K-q8_0.gguf") else { return };
    let mut runner = Runner::new(&path, 64).unwrap();
    let formats: Vec<&str> = runner.model.weights.iter().map(|w| w.format.info().name).collect();
    assert!(formats.contains(&"q8_0"), "{formats:?}");
    assert!(matches!(runner.model.groups[..], [CacheGroup::Paged { window: None, .. }]));
    assert!(runner.step(&[1, 385, 328], &[2])[0].iter().all(|v| v.is_finite()));
}
