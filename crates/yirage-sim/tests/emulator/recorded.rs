//! The kernels that the conformance suite and the tiny models are run with.

use std::sync::Arc;
use yirage_conformance::Suite;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::Format;
use yirage_kir::ComputeKernel;
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_sim::{Settings, Sim};
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;

/// Those of the cases of a suite.
pub(crate) fn of_suite(suite: &Suite) -> Vec<ComputeKernel> {
    let sim = Sim::with(Settings::with_recorder());
    // Nothing is computed, so that nothing comes out right; what was asked for is known all the same.
    suite.run(&*sim.open(0, &OpenOptions::default()).unwrap().0, &[]);
    sim.kernels()
}

/// Those of the tiny models.
pub(crate) fn of_models(names: &[&str]) -> Vec<ComputeKernel> {
    let sim = Sim::with(Settings::with_recorder());
    let (device, _) = sim.open(0, &OpenOptions::default()).unwrap();
    for model in names {
        golden(model, device.clone());
    }
    sim.kernels()
}

/// The tokens that a device gives for a model's golden prompts, and those wanted.
pub(crate) fn golden(model: &str, device: Arc<dyn Device>) -> Vec<(Vec<u32>, Vec<u32>)> {
    let folder = tiny::model(model);
    let golden = json::read(&folder.join("golden.json"));
    let options =
        EngineOptions { kv: Some(Format::F32), precision: Precision::Exact, max_seqs: 2, ..EngineOptions::default() };
    let mut engine = Engine::load(&Checkpoint::open(&folder).unwrap(), device, &options, &mut |_, _| {}).unwrap();
    let cases = golden["cases"].as_array().unwrap().iter();
    let mut tokens = |case: &serde_json::Value| {
        let wanted = ids(&case["greedy16"]);
        (greedy(&mut engine, &ids(&case["ids"]), wanted.len()), wanted)
    };
    cases.map(&mut tokens).collect()
}

/// The tokens that follow a prompt.
fn greedy(engine: &mut Engine, prompt: &[u32], count: usize) -> Vec<u32> {
    let (seq, mut tokens) = (engine.add(Request::greedy(prompt.to_vec(), count as u32)).unwrap(), Vec::new());
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            if let Event::Token { seq: of, token, .. } = event
                && of == seq
            {
                tokens.push(token);
            }
        }
    }
    tokens
}
