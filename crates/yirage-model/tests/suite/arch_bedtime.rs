//! A trained model of 250,000 parameters, from GGUF (f32 and Q8_0) and from safetensors, against its golden file.

use crate::arch_support::ArchRunner;
use serde_json::Value;
use std::path::Path;
use yirage_model::arch::KvCacheSpec;
use yirage_testkit::json::{self, floats, ids};
use yirage_testkit::rows::argmax;
use yirage_testkit::{absent, bedtime};

/// Greedy steps of every case: exact tokens, the top ten logits within `bound`.
fn check(model: &Path, golden: &Value, bound: f64) {
    let mut runner = ArchRunner::new(model, 1024).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let (prompt, greedy) = (ids(&case["prompt_ids"]), ids(&case["greedy_ids"]));
        runner.reset();
        let mut logits = runner.step(&prompt, &[prompt.len() - 1]).remove(0);
        for (step, &want) in case["steps"].as_array().unwrap().iter().zip(&greedy) {
            let pairs = ids(&step["top10_ids"]).into_iter().zip(floats(&step["top10_logits"]));
            for (id, value) in pairs {
                let d = (f64::from(logits[id as usize]) - value).abs();
                assert!(d <= bound, "{} step {}: logit {id} is off by {d}", case["id"], step["step"]);
            }
            assert_eq!(argmax(&logits), want, "{} step {}", case["id"], step["step"]);
            logits = runner.step(&[want], &[0]).remove(0);
        }
    }
}

#[test]
fn f32_gguf_is_exact() {
    check(&bedtime::f32(), &bedtime::golden(), 1e-3);
}

#[test]
fn safetensors_are_exact() {
    check(&bedtime::safetensors(), &bedtime::golden(), 1e-3);
}

/// The golden file was made from the very weights, de-quantised.
#[test]
fn q8_gguf_is_exact_with_quantised_weights_and_one_cache_group() {
    check(&bedtime::q8_0(), &bedtime::golden(), 1e-3);
    let runner = ArchRunner::new(&bedtime::q8_0(), 64).unwrap();
    let formats: Vec<&str> = runner.model.weights.iter().map(|w| w.format.info().name).collect();
    assert!(formats.contains(&"q8_0"), "{formats:?}");
    assert!(matches!(runner.model.groups[..], [KvCacheSpec::Paged { window: None, .. }]));
}

#[test]
#[ignore = "needs ../shared/models/stories260K"]
fn stories_are_exact() {
    let golden = json::read(&absent::shared("golden/stories.json"));
    for file in ["stories260K-f32.gguf", "hf"] {
        check(&absent::shared("models/stories260K").join(file), &golden, 1e-3);
    }
}
