//! Tiny models: golden tokens by steps and by captured graphs.

use crate::support::device;
use std::sync::Arc;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::Device;
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;

/// The tokens that follow a prompt.
pub(crate) fn greedy(engine: &mut Engine, prompt: &[u32], count: usize) -> Vec<u32> {
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

pub(crate) fn check(models: &[&str], device: &Arc<dyn Device>) {
    for model in models {
        let folder = tiny::model(model);
        let golden = json::read(&folder.join("golden.json"));
        let options = EngineOptions {
            kv: Some(Format::F32),
            precision: Precision::Exact,
            max_seqs: 2,
            ..EngineOptions::default()
        };
        let checkpoint = Checkpoint::open(&folder).unwrap();
        let mut engine = Engine::load(&checkpoint, device.clone(), &options, &mut |_, _| {}).unwrap();
        for case in golden["cases"].as_array().unwrap() {
            let wanted = ids(&case["greedy16"]);
            assert_eq!(greedy(&mut engine, &ids(&case["ids"]), wanted.len()), wanted, "{model}");
        }
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_model_gives_the_golden_tokens() {
    check(&tiny::NAMES[..1], &device());
}

/// Windows, sinks and a cap of scores: heads of 16 elements, which the kernel of attention takes that is written by hand.
#[test]
#[ignore = "needs a compiler of C++"]
fn models_with_every_kind_of_attention_give_the_golden_tokens() {
    check(&["mistral-swa", "gemma2", "gptoss"], &device());
}

#[test]
#[ignore = "needs a compiler of C++, and half an hour"]
fn every_architecture_in_all_its_ways_gives_the_golden_tokens() {
    check(tiny::NAMES, &device());
}
