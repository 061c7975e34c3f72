//! What the golden tests share: finding files, loading engines, collecting logits.
#![allow(dead_code, unreachable_pub, clippy::print_stdout, clippy::print_stderr)] // each test file uses its part

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use yirage_engine::scheduler::LogitsWanted;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_model::Checkpoint;
use yirage_plan::Precision;

/// The folder of shared reference files, or none (said loudly).
pub fn shared(what: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(what);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {what} is not beside the checkout");
    None
}

/// A large model from the folder that `YIRAGE_MODELS` names, or none (said loudly).
pub fn large(file: &str) -> Option<PathBuf> {
    let path = std::env::var_os("YIRAGE_MODELS").map(|d| PathBuf::from(d).join(file)).filter(|p| p.exists());
    if path.is_none() {
        eprintln!("SKIPPED: {file} is not in the folder YIRAGE_MODELS names");
    }
    path
}

pub fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub fn ids(v: &Value) -> Vec<u32> {
    v.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

pub fn floats(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

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
                Event::Logits { .. } | Event::Hidden { .. } | Event::RopeScaled { .. } => {}
            }
        }
    }
    tokens
}

pub fn argmax(row: &[f32]) -> u32 {
    let mut best = 0;
    for (i, x) in row.iter().enumerate() {
        if *x > row[best] {
            best = i;
        }
    }
    best as u32
}

pub fn logsumexp(row: &[f32]) -> f64 {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max) as f64;
    max + row.iter().map(|&x| (f64::from(x) - max).exp()).sum::<f64>().ln()
}

/// How close logits must come, and at which margin the argmax must agree.
pub struct Bounds {
    pub logit: f64,
    pub margin: f64,
    pub nll: f64,
    pub tokens: bool,
}

/// Checks all cases of a golden file against a model: teacher-forced top-10 logits, argmax, log-probabilities of the
/// passage, and greedy tokens where `bounds` asks for them.
pub fn check_golden(model: &Path, golden: &Value, options: &EngineOptions, bounds: &Bounds) {
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
    let nll: f64 =
        (1..passage.len()).map(|i| logsumexp(&rows[i - 1]) - f64::from(rows[i - 1][passage[i] as usize])).sum::<f64>()
            / (passage.len() - 1) as f64;
    let want = golden["nll"]["mean_nll"].as_f64().unwrap();
    println!("{}: mean nll {nll:.5}, reference {want:.5}", model.display());
    assert!((nll - want).abs() <= bounds.nll, "mean nll {nll}, reference {want}");
}
