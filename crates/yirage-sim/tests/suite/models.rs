//! The tiny random models of every architecture on simulated accelerators: golden tokens, whatever the delays.
#![allow(clippy::print_stdout)] // says what it ran

use std::sync::Arc;
use std::time::Duration;
use yirage_engine::scheduler::LogitsWanted;
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, Device, MemoryReport, OpenOptions};
use yirage_ir::{Format, Node, NodeKind, Op};
use yirage_model::Checkpoint;
use yirage_plan::{ExpertDivision, Precision};
use yirage_sim::{Settings, Sim, WeightTileShape};
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

/// Accelerators of every kind of interface.
fn interfaces() -> [(&'static str, Settings); 3] {
    let all = [Settings::with_pointers(), Settings::with_bindings(), Settings::with_operations()];
    let [pointers, bindings, operations] = all;
    [("pointers", pointers), ("bindings", bindings), ("operations", operations)]
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
    for (interface, settings) in interfaces() {
        let sim = Sim::with(Settings { devices: 2, ..settings });
        for (i, model) in tiny::NAMES.iter().enumerate() {
            check(model, sim.open(i as u32 % 2, &OpenOptions::default()).unwrap().0);
        }
        let held = sim.memory_stats();
        assert!(held.iter().all(|held| held.bytes == 0 && held.allocations == held.frees), "{interface}: {held:?}");
    }
}

/// Weights of products lie in tiles that the library packs on the host, and take the bytes that the layout pads.
#[test]
fn weights_in_tiles_change_no_token() {
    let sim = Sim::with(Settings { weight_tiles: Some(WeightTileShape::POINTERS), ..Settings::default() });
    for model in tiny::NAMES {
        check(model, sim.open(0, &OpenOptions::default()).unwrap().0);
    }
}

#[test]
fn delays_change_nothing() {
    for (seed, (_, settings)) in (1..).zip(interfaces()) {
        let sim = Sim::with(Settings { seed, delay: Duration::from_micros(60), ..settings });
        check(tiny::NAMES[0], sim.open(0, &OpenOptions::default()).unwrap().0);
    }
}

#[test]
fn a_captured_graph_is_made_once_however_the_sequence_grows() {
    // Blocks of 32, of 64 and of 32 positions, the last ones padded: block tables grow sixteen and eight times.
    for settings in [Settings::default(), Settings::with_pointers(), Settings::with_operations()] {
        is_captured_once(settings);
    }
}

fn is_captured_once(settings: Settings) {
    let sim = Sim::with(settings);
    let (device, _) = sim.open(0, &OpenOptions::default()).unwrap();
    let options = EngineOptions { context: Some(512), max_seqs: 3, ..EngineOptions::default() };
    let mut engine =
        Engine::load(&Checkpoint::open(tiny::model(tiny::NAMES[0])).unwrap(), device, &options, &mut |_, _| {})
            .unwrap();
    // Sequences come and go on the way.
    let alone = greedy(&mut engine, &[1, 2, 3], 500);
    assert_eq!(alone.len(), 500);
    let first = sim.captures()[0];
    assert!(first > 0);
    assert_eq!(greedy(&mut engine, &[1, 2, 3], 500), alone);
    let plans = engine.executors().len() as u64;
    println!("{first} captured graphs for {plans} plans");
    assert_eq!(sim.captures()[0], first, "the same steps captured again");
    assert!(first <= plans, "{first} captured graphs for {plans} plans");
}

#[test]
fn weights_reach_the_device_through_a_few_pieces_of_memory() {
    for transfer_queue in [true, false] {
        let delay = Duration::from_micros(200);
        let sim = Sim::with(Settings { transfer_queue, delay, seed: 5, ..Settings::default() });
        check(tiny::NAMES[0], sim.open(0, &OpenOptions::default()).unwrap().0);
        let staging = sim.staging()[0];
        assert!((1..=16 << 20).contains(&staging), "{staging} bytes of staging memory");
    }
}

/// Logits of a prompt's positions, at `fast`, with activations of this type, on so many ranks.
fn prompt_logits(model: &str, prompt: &[u32], activations: Format, ranks: u32) -> Vec<f32> {
    let sim = Sim::with(Settings { activations, ranks, ..Settings::default() });
    let (device, _) = sim.open(0, &OpenOptions::default()).unwrap();
    let options = EngineOptions { kv: Some(Format::F32), precision: Precision::Fast, ..EngineOptions::default() };
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

#[test]
fn activations_of_sixteen_bits_are_as_close_as_their_bits() {
    let error = |a: &[f32], b: &[f32]| {
        let square = |x: f32| f64::from(x) * f64::from(x);
        let off: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
        (off / a.iter().map(|&a| square(a)).sum::<f64>()).sqrt()
    };
    for model in tiny::NAMES {
        let golden = json::read(&tiny::model(model).join("golden.json"));
        let prompt = ids(&golden["cases"].as_array().unwrap()[0]["ids"]);
        let wide = prompt_logits(model, &prompt, Format::F32, 1);
        assert!(!wide.is_empty(), "{model}");
        let [f16, bf16] = [Format::F16, Format::BF16].map(|ty| error(&wide, &prompt_logits(model, &prompt, ty, 1)));
        println!("{model}: relative error {f16:.2e} with f16, {bf16:.2e} with bf16");
        assert!(f16 > 0.0 && bf16 > f16 && f16 < 0.01 && bf16 < 0.08, "{model}: {f16} {bf16}");
    }
}

#[test]
fn several_ranks_give_the_tokens_of_one() {
    for (ranks, delay) in [(2, Duration::ZERO), (2, Duration::from_micros(60)), (4, Duration::ZERO)] {
        for model in tiny::NAMES {
            let sim = Sim::with(Settings { ranks, delay, seed: u64::from(ranks), ..Settings::default() });
            check(model, sim.open(0, &OpenOptions::default()).unwrap().0);
            let held = sim.memory_stats();
            assert!(held.iter().all(|held| held.bytes == 0 && held.allocations == held.frees), "{model}: {held:?}");
            if delay > Duration::ZERO {
                break;
            }
        }
    }
}

const WHOLE_EXPERTS: OpenOptions =
    OpenOptions { threads: None, isa: None, guarded: false, keep_stalled: false, experts: ExpertDivision::Whole };

/// Each rank has experts of its own; where there are six, three ranks have two each and share no head.
#[test]
fn experts_of_different_ranks_give_the_tokens_of_one() {
    let mixtures: Vec<&str> = tiny::mixtures().collect();
    assert!(mixtures.len() >= 17, "{mixtures:?}");
    for (ranks, models) in [(2, &mixtures[..]), (3, &["qwen2moe"]), (4, &["gptoss"])] {
        for model in models {
            let sim = Sim::with(Settings { ranks, ..Settings::default() });
            check(model, sim.open(0, &WHOLE_EXPERTS).unwrap().0);
        }
    }
}

/// Of the table of embeddings each rank has some rows, and adds what it has; so it does with a layer's experts where they are its
/// own.
#[test]
fn ranks_add_what_only_one_of_them_has() {
    let sums = |experts| {
        let sim = Sim::with(Settings { ranks: 2, ..Settings::default() });
        let (device, _) = sim.open(0, &OpenOptions { experts, ..OpenOptions::default() }).unwrap();
        let (checkpoint, options) = (Checkpoint::open(tiny::model("mixtral")).unwrap(), EngineOptions::default());
        let planned = yirage_engine::plan_step(&checkpoint, &*device, &options, 4, &mut Vec::new()).unwrap();
        let is_sum = |node: &&Node| matches!(node.kind, NodeKind::Op(Op::AllReduce(_)));
        planned.plan.graph.nodes.iter().filter(is_sum).count()
    };
    assert_eq!((sums(ExpertDivision::Rows), sums(ExpertDivision::Whole)), (1, 1 + 3), "three layers");
}

/// What ranks of an accelerator hold together of a model.
fn held_by(model: &str, ranks: u32, experts: ExpertDivision) -> MemoryReport {
    let sim = Sim::with(Settings { ranks, ..Settings::default() });
    let (device, _) = sim.open(0, &OpenOptions { experts, ..OpenOptions::default() }).unwrap();
    let checkpoint = Checkpoint::open(tiny::model(model)).unwrap();
    let options = EngineOptions { context: Some(64), max_seqs: 1, ..EngineOptions::default() };
    let _engine = Engine::load(&checkpoint, device.clone(), &options, &mut |_, _| {}).unwrap();
    device.memory()
}

/// Norms, routers of few experts and the table of embeddings are on each rank, all else once: the rows of each expert, and the
/// groups of heads of latent attention too.
#[test]
fn each_rank_holds_its_part_alone() {
    for model in ["llama", "qwen3moe", "mixtral", "deepseek-v3"] {
        let [one, two] = [1, 2].map(|ranks| held_by(model, ranks, ExpertDivision::Rows));
        println!("{model}: weights of {} bytes on one, {} on two", one.weights.used, two.weights.used);
        assert!(two.weights.used > one.weights.used && two.weights.used < one.weights.used * 5 / 4, "{model}");
        if model == "llama" {
            assert_eq!(two.cache.used, one.cache.used, "a cache is divided by its heads");
        } else {
            let own = held_by(model, 2, ExpertDivision::Whole);
            assert_eq!(own.weights.used, two.weights.used, "{model}: whole experts are as much as rows of all");
        }
    }
}

#[test]
fn ranks_and_activations_of_sixteen_bits_go_together() {
    let prompt = [1, 2, 3, 4, 5];
    for model in tiny::NAMES {
        let alone = prompt_logits(model, &prompt, Format::BF16, 1);
        assert_eq!(prompt_logits(model, &prompt, Format::BF16, 2), alone, "{model}");
        assert_ne!(prompt_logits(model, &prompt, Format::F32, 2), alone, "{model}: nothing is rounded");
    }
}
