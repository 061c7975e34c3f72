//! Tiny models: golden tokens.

use crate::support::{device, machine};
use std::sync::Arc;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::Device;
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;

/// The tokens that follow a prompt.
fn greedy(engine: &mut Engine, prompt: &[u32], count: usize) -> Vec<u32> {
    let seq = engine.add(Request::greedy(prompt.to_vec(), count as u32)).unwrap();
    let mut tokens = Vec::new();
    while !engine.is_idle() {
        let events = engine.step().unwrap().into_iter();
        tokens.extend(events.filter_map(|event| match event {
            Event::Token { seq: of, token, .. } if of == seq => Some(token),
            _ => None,
        }));
    }
    tokens
}

fn check(model: &str, device: &Arc<dyn Device>, kv: Format) {
    let folder = tiny::model(model);
    let golden = json::read(&folder.join("golden.json"));
    let options = EngineOptions { kv: Some(kv), precision: Precision::Exact, max_seqs: 2, ..EngineOptions::default() };
    let checkpoint = Checkpoint::open(&folder).unwrap();
    let mut engine = Engine::load(&checkpoint, device.clone(), &options, &mut |_, _| {}).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let wanted = ids(&case["greedy16"]);
        assert_eq!(greedy(&mut engine, &ids(&case["ids"]), wanted.len()), wanted, "{model}");
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn every_architecture_gives_the_golden_tokens() {
    let (machine, backend) = machine(&[]);
    for model in tiny::NAMES {
        let before = backend.counts();
        check(model, &device(&backend), Format::F32);
        let after = backend.counts();
        let (operators, host) = (after.by_operators - before.by_operators, after.on_host - before.on_host);
        println!("{model}: {operators} nodes by operators, {host} on the host");
        assert!(operators > host && host > 0, "{model}");
    }
    assert!(machine.stats().is_clean(), "{:?}", machine.stats());
}

#[test]
#[ignore = "needs a compiler of C++"]
fn delays_change_nothing() {
    for seed in ["1", "2", "3"] {
        let (machine, backend) = machine(&[("delay_us", "60"), ("seed", seed)]);
        check(tiny::NAMES[0], &device(&backend), Format::F32);
        assert!(machine.stats().is_clean(), "{:?}", machine.stats());
    }
}
