//! Real GGUF models in the folder that `YIRAGE_MODELS` names: the scalar reference on the first golden prompt.

use crate::arch_support::{self, ArchRunner};
use yirage_testkit::absent;
use yirage_testkit::json::{self, floats, ids};
use yirage_testkit::rows::argmax;

fn check_first_step(file: &str, golden: &str) {
    let (model, golden) = (absent::model(file), json::read(&absent::shared(golden)));
    let case = &golden["cases"][0];
    let (prompt, step) = (ids(&case["prompt_ids"]), &case["steps"][0]);
    let mut runner = ArchRunner::new(&model, 64).unwrap();
    let logits = runner.step(&prompt, &[prompt.len() - 1]).remove(0);
    for (id, value) in ids(&step["top10_ids"]).into_iter().zip(floats(&step["top10_logits"])) {
        let d = (f64::from(logits[id as usize]) - value).abs();
        assert!(d <= 2e-3, "{file}: logit {id} is off by {d}");
    }
    assert_eq!(argmax(&logits), ids(&case["greedy_ids"])[0]);
}

#[test]
#[ignore = "needs gemma-3-270m-q4_k_m.gguf in YIRAGE_MODELS, and ../shared/golden"]
fn gemma3_in_mixed_block_formats() {
    check_first_step("gemma-3-270m-q4_k_m.gguf", "golden/gemma.json");
}

#[test]
#[ignore = "needs smollm2-135m-instruct-q4_1.gguf in YIRAGE_MODELS, and ../shared/golden"]
fn smollm2_in_q4_1() {
    check_first_step("smollm2-135m-instruct-q4_1.gguf", "golden/smollm2.json");
}

#[test]
#[ignore = "needs qwen2.5-coder-0.5b-instruct-q4_k_m.gguf in YIRAGE_MODELS"]
fn qwen2_builds_and_binds_every_weight() {
    let path = absent::model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    let (checkpoint, model) = arch_support::load(&path, 16).unwrap();
    yirage_ir::verify(&model.graph).unwrap();
    assert!(model.weights.iter().all(|w| w.check(&checkpoint).is_ok()));
    assert!(model.weights.iter().any(|w| w.name == "l0.q.b"));
}
