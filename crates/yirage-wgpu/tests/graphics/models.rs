//! The tiny random models of every architecture on the first Vulkan device of this machine: golden tokens.
use std::sync::Arc;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_probe::ProbeEnvironment;
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;
use yirage_wgpu::{GraphicsApi, WgpuBackend};

/// The tokens that follow a prompt.
pub(crate) fn greedy(engine: &mut Engine, prompt: &[u32], count: usize) -> Vec<u32> {
    let (seq, mut tokens) = (engine.add(Request::greedy(prompt.to_vec(), count as u32)).unwrap(), Vec::new());
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            match event {
                Event::Token { seq: of, token, .. } if of == seq => tokens.push(token),
                Event::Finished { reason, .. } => assert!(!format!("{reason:?}").contains("Error"), "{reason:?}"),
                _ => {}
            }
        }
    }
    tokens
}

/// The cases of a model whose tokens are not the golden ones, or why it does not run.
fn check(model: &str, device: &Arc<dyn Device>) -> Result<(), String> {
    let folder = tiny::model(model);
    let golden = json::read(&folder.join("golden.json"));
    let options =
        EngineOptions { kv: Some(Format::F32), precision: Precision::Exact, max_seqs: 2, ..EngineOptions::default() };
    let checkpoint = Checkpoint::open(&folder).map_err(|e| e.to_string())?;
    let mut engine = Engine::load(&checkpoint, device.clone(), &options, &mut |_, _| {}).map_err(|e| e.to_string())?;
    for case in golden["cases"].as_array().unwrap() {
        let wanted = ids(&case["greedy16"]);
        let got = greedy(&mut engine, &ids(&case["ids"]), wanted.len());
        if got != wanted {
            return Err(format!("{got:?}, expected {wanted:?}"));
        }
    }
    Ok(())
}

fn hold(models: &[&str]) {
    let backend = WgpuBackend::new(GraphicsApi::Vulkan, ProbeEnvironment::of_this_process());
    let (device, _) = backend.open(0, &OpenOptions::default()).unwrap();
    let wrong = models.iter().filter_map(|model| check(model, &device).err().map(|why| format!("{model}: {why}")));
    let wrong: Vec<String> = wrong.collect();
    println!("{} of {} models", models.len() - wrong.len(), models.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What they have kernels of in common is tried by the others.
#[test]
#[ignore = "needs a Vulkan device"]
fn every_third_architecture_gives_the_golden_tokens() {
    hold(&tiny::NAMES.iter().copied().step_by(3).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs a Vulkan device, and minutes"]
fn every_architecture_in_all_its_ways_gives_the_golden_tokens() {
    hold(tiny::NAMES);
}
