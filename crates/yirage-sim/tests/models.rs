//! The tiny random models of every architecture on simulated accelerators: golden tokens, whatever the delays.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything unexpected, and says what it ran

use std::sync::Arc;
use std::time::Duration;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_sim::{Settings, Sim};
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;

/// The tokens that follow a prompt.
fn greedy(engine: &mut Engine, prompt: &[u32], count: usize) -> Vec<u32> {
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

fn check(model: &str, device: Arc<dyn Device>) {
    let folder = tiny::model(model);
    let golden = json::read(&folder.join("golden.json"));
    let options =
        EngineOptions { kv: Some(Format::F32), precision: Precision::Exact, max_seqs: 2, ..EngineOptions::default() };
    let mut engine = Engine::load(&Checkpoint::open(&folder).unwrap(), device, &options, &mut |_, _| {}).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let wanted = ids(&case["greedy16"]);
        assert_eq!(greedy(&mut engine, &ids(&case["ids"]), wanted.len()), wanted, "{model}");
    }
}

#[test]
fn every_architecture_gives_the_golden_tokens() {
    let sim = Sim::with(Settings { devices: 2, ..Settings::default() });
    for (i, model) in tiny::NAMES.iter().enumerate() {
        check(model, sim.open(i as u32 % 2, &OpenOptions::default()).unwrap().0);
    }
    assert!(
        sim.memory_stats().iter().all(|held| held.bytes == 0 && held.allocations == held.frees),
        "{:?}",
        sim.memory_stats()
    );
}

#[test]
fn delays_change_nothing() {
    for seed in 1..=3 {
        let records = seed == 2;
        let sim = Sim::with(Settings {
            seed,
            captures_graphs: records,
            delay: Duration::from_micros(60),
            ..Settings::default()
        });
        check(tiny::NAMES[0], sim.open(0, &OpenOptions::default()).unwrap().0);
    }
}
