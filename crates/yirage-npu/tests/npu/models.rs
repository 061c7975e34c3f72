//! Tiny models: golden tokens.

use crate::support::{chips, device, machine};
use std::sync::Arc;
use yirage_engine::scheduler::LogitsWanted;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::Device;
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_npu::NpuVendor;
use yirage_plan::Precision;
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;

for_every_maker! {
    every_architecture_gives_the_golden_tokens,
    delays_change_nothing,
    activations_of_sixteen_bits_are_as_close_as_their_bits,
}

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

pub(crate) fn check(model: &str, device: &Arc<dyn Device>, kv: Format) {
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

fn every_architecture_gives_the_golden_tokens(vendor: NpuVendor) {
    let (machine, backend) = machine(vendor, &[]);
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

fn delays_change_nothing(vendor: NpuVendor) {
    for seed in ["1", "2", "3"] {
        let (machine, backend) = machine(vendor, &[("delay_us", "60"), ("seed", seed)]);
        check(tiny::NAMES[0], &device(&backend), Format::F32);
        assert!(machine.stats().is_clean(), "{:?}", machine.stats());
    }
}

/// Logits of a prompt's positions.
fn logits(model: &str, prompt: &[u32], device: Arc<dyn Device>, kv: Format, precision: Precision) -> Vec<f32> {
    let options = EngineOptions { kv: Some(kv), precision, ..EngineOptions::default() };
    let checkpoint = Checkpoint::open(tiny::model(model)).unwrap();
    let mut engine = Engine::load(&checkpoint, device, &options, &mut |_, _| {}).unwrap();
    engine.add(Request { logits: Some(LogitsWanted::All), ..Request::greedy(prompt.to_vec(), 1) }).unwrap();
    let mut all = Vec::new();
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            if let Event::Logits { logits, .. } = event {
                all.extend(logits);
            }
        }
    }
    all
}

fn activations_of_sixteen_bits_are_as_close_as_their_bits(vendor: NpuVendor) {
    let [(_a, large), (_b, small)] = chips(vendor).map(|(chip, _)| machine(vendor, &[("chip", chip)]));
    let error = |a: &[f32], b: &[f32]| {
        let square = |x: f32| f64::from(x) * f64::from(x);
        let off: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
        (off / a.iter().map(|&a| square(a)).sum::<f64>()).sqrt()
    };
    for model in tiny::NAMES {
        let golden = json::read(&tiny::model(model).join("golden.json"));
        let prompt = ids(&golden["cases"].as_array().unwrap()[0]["ids"]);
        let wide = logits(model, &prompt, device(&large), Format::F32, Precision::Exact);
        assert!(!wide.is_empty(), "{model}");
        let narrow = [(&small, Format::F16), (&large, Format::BF16)];
        let [f16, bf16] =
            narrow.map(|(backend, kv)| error(&wide, &logits(model, &prompt, device(backend), kv, Precision::Fast)));
        println!("{model}: relative error {f16:.2e} with f16, {bf16:.2e} with bf16");
        assert!(f16 > 0.0 && bf16 > f16 && f16 < 0.01 && bf16 < 0.08, "{model}: {f16} {bf16}");
    }
}
