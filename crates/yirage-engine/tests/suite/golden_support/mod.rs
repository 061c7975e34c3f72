//! What the golden tests share: loading engines, collecting logits.
#![allow(dead_code, unreachable_pub, unused_imports, clippy::print_stdout)] // each test file uses its part

use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use yirage_engine::scheduler::LogitsWanted;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_model::Checkpoint;
use yirage_plan::Precision;
pub use yirage_testkit::json::{floats, ids, read as json};
pub use yirage_testkit::rows::{argmax, logsumexp, mean_nll};

pub fn options(precision: Precision) -> EngineOptions {
    EngineOptions { precision, chunk: 64, ..EngineOptions::default() }
}

pub fn engine(model: &Path, options: &EngineOptions) -> Engine {
    engine_with(model, options, &OpenOptions::default())
}

pub fn engine_with(model: &Path, options: &EngineOptions, open: &OpenOptions) -> Engine {
    engine_on(model, options, yirage_cpu::Cpu.open(0, open).unwrap().0)
}

pub fn engine_on(model: &Path, options: &EngineOptions, device: Arc<dyn Device>) -> Engine {
    let checkpoint = Checkpoint::open(model).unwrap();
    Engine::load(&checkpoint, device, options, &mut |_, _| {}).unwrap_or_else(|e| panic!("{}: {e}", model.display()))
}

/// Logits of every position of `ids`.
pub fn all_logits(engine: &mut Engine, ids: &[u32]) -> Vec<Vec<f32>> {
    let request = Request { logits: Some(LogitsWanted::All), ..Request::greedy(ids.to_vec(), 0) };
    engine.add(request).unwrap();
    let mut rows = Vec::new();
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            if let Event::Logits { position, logits, .. } = event {
                assert_eq!(position, rows.len());
                rows.push(logits);
            }
        }
    }
    assert_eq!(rows.len(), ids.len());
    rows
}

/// Greedy tokens after `ids`.
pub fn greedy(engine: &mut Engine, ids: &[u32], n: usize) -> Vec<u32> {
    engine.add(Request::greedy(ids.to_vec(), n as u32)).unwrap();
    let mut tokens = Vec::new();
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            match event {
                Event::Token { token, .. } => tokens.push(token),
                Event::Finished { reason, .. } => assert!(!format!("{reason:?}").contains("Error"), "{reason:?}"),
                Event::Logits { .. }
                | Event::Hidden { .. }
                | Event::PromptLogprobs { .. }
                | Event::RopeScaled { .. } => {}
            }
        }
    }
    tokens
}

/// How close logits must come, and at which margin the argmax must agree.
pub struct GoldenBounds {
    pub logit: f64,
    pub margin: f64,
    pub nll: f64,
    pub tokens: bool,
}

/// Checks all cases of a golden file against a model: teacher-forced top-10 logits, argmax, log-probabilities of the
/// passage, and greedy tokens where `bounds` asks for them.
pub fn check_golden(model: &Path, golden: &Value, options: &EngineOptions, bounds: &GoldenBounds) {
    let mut engine = engine(model, options);
    let mut worst = 0f64;
    for case in golden["cases"].as_array().unwrap() {
        let (prompt, reference) = (ids(&case["prompt_ids"]), ids(&case["greedy_ids"]));
        let forced: Vec<u32> = prompt.iter().chain(&reference[..reference.len() - 1]).copied().collect();
        let rows = all_logits(&mut engine, &forced);
        for step in case["steps"].as_array().unwrap() {
            let row = &rows[step["pos"].as_u64().unwrap() as usize];
            for (id, want) in ids(&step["top10_ids"]).iter().zip(floats(&step["top10_logits"])) {
                worst = worst.max((f64::from(row[*id as usize]) - want).abs());
            }
            if step["margin"].as_f64().unwrap() > bounds.margin {
                let chosen = step["chosen"].as_u64().unwrap() as u32;
                assert_eq!(argmax(row), chosen, "case {} step {}", case["id"], step["step"]);
            }
        }
        if bounds.tokens {
            assert_eq!(greedy(&mut engine, &prompt, reference.len()), reference, "case {}", case["id"]);
        }
    }
    println!("{}: worst |dlogit| {worst:.5}", model.display());
    assert!(worst <= bounds.logit, "worst |dlogit| {worst} exceeds {}", bounds.logit);
    let passage = ids(&golden["nll"]["ids"]);
    let rows = all_logits(&mut engine, &passage);
    let nll = mean_nll(&rows, &passage);
    let want = golden["nll"]["mean_nll"].as_f64().unwrap();
    println!("{}: mean nll {nll:.5}, reference {want:.5}", model.display());
    assert!((nll - want).abs() <= bounds.nll, "mean nll {nll}, reference {want}");
}
