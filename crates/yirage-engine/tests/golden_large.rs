//! Real models against their golden files, from the folder that `YIRAGE_MODELS` names.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod golden_support;

use golden_support::{Bounds, check_golden, json, large, options, shared};
use yirage_engine::EngineOptions;
use yirage_ir::Format;
use yirage_plan::Precision;

fn check(file: &str, golden: &str) {
    let (Some(model), Some(golden)) = (large(file), shared(golden)) else { return };
    let golden = json(&golden);
    let exact = EngineOptions { kv: Some(Format::F32), ..options(Precision::Exact) };
    check_golden(&model, &golden, &exact, &Bounds { logit: 2e-3, margin: 0.05, nll: 1e-3, tokens: true });
    let fast = Bounds { logit: 1.0, margin: 0.5, nll: 1e-2, tokens: false };
    check_golden(&model, &golden, &options(Precision::Fast), &fast);
}

#[test]
fn smollm2() {
    check("smollm2-135m-instruct-q4_1.gguf", "golden/smollm2.json");
}

#[test]
fn gemma() {
    check("gemma-3-270m-q4_k_m.gguf", "golden/gemma.json");
}
