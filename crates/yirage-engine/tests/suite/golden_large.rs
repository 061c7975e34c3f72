//! Real models against their golden files, from the folder that `YIRAGE_MODELS` names.

use crate::golden_support::{GoldenBounds, check_golden, json, options};
use yirage_engine::EngineOptions;
use yirage_ir::Format;
use yirage_plan::Precision;
use yirage_testkit::absent;

fn check(file: &str, golden: &str) {
    let (model, golden) = (absent::model(file), json(&absent::shared(golden)));
    let exact = EngineOptions { kv: Some(Format::F32), ..options(Precision::Exact) };
    check_golden(&model, &golden, &exact, &GoldenBounds { logit: 2e-3, margin: 0.05, nll: 1e-3, tokens: true });
    let fast = GoldenBounds { logit: 1.0, margin: 0.5, nll: 1e-2, tokens: false };
    check_golden(&model, &golden, &options(Precision::Fast), &fast);
}

/// The same with keys and values in int8, within the bound of int8 activations.
fn check_int8_cache(file: &str, golden: &str) {
    let (model, golden) = (absent::model(file), json(&absent::shared(golden)));
    for precision in [Precision::Exact, Precision::Fast] {
        let int8 = EngineOptions { kv: Some(Format::Q8_0), ..options(precision) };
        check_golden(&model, &golden, &int8, &GoldenBounds { logit: 1.0, margin: 0.5, nll: 1e-2, tokens: false });
    }
}

#[test]
#[ignore = "needs smollm2-135m-instruct-q4_1.gguf in YIRAGE_MODELS, and ../shared/golden"]
fn smollm2_with_an_int8_cache() {
    check_int8_cache("smollm2-135m-instruct-q4_1.gguf", "golden/smollm2.json");
}

#[test]
#[ignore = "needs gemma-3-270m-q4_k_m.gguf in YIRAGE_MODELS, and ../shared/golden"]
fn gemma_with_an_int8_cache() {
    check_int8_cache("gemma-3-270m-q4_k_m.gguf", "golden/gemma.json");
}

#[test]
#[ignore = "needs smollm2-135m-instruct-q4_1.gguf in YIRAGE_MODELS, and ../shared/golden"]
fn smollm2() {
    check("smollm2-135m-instruct-q4_1.gguf", "golden/smollm2.json");
}

#[test]
#[ignore = "needs gemma-3-270m-q4_k_m.gguf in YIRAGE_MODELS, and ../shared/golden"]
fn gemma() {
    check("gemma-3-270m-q4_k_m.gguf", "golden/gemma.json");
}
