//! A model that is given as a graph with its bytes runs as the one from the files does; what no engine can run is refused.

use crate::golden_support::{greedy, options};
use std::collections::HashMap;
use std::sync::Arc;
use yirage_engine::{CacheSize, Engine, EngineError, EngineOptions, GraphModel};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::op::Gather;
use yirage_ir::{DType, Format, GraphBuilder, Sym, Type};
use yirage_model::arch::{BuildOptions, KvCacheSpec, Model, ModelOutput, build};
use yirage_model::weights::materialise;
use yirage_model::{Checkpoint, RawConfig};
use yirage_plan::Precision;
use yirage_testkit::tiny;

fn cpu() -> Arc<dyn Device> {
    yirage_cpu::Cpu.open(0, &OpenOptions { threads: Some(1), ..OpenOptions::default() }).unwrap().0
}

fn opts() -> EngineOptions {
    EngineOptions { context: Some(96), ..options(Precision::Fast) }
}

/// The model of a checkpoint as its owner would give it.
fn given(name: &str) -> GraphModel {
    let checkpoint = Checkpoint::open(tiny::model(name)).unwrap();
    let config = RawConfig::load(&checkpoint).unwrap();
    let model = build(&checkpoint, &config, BuildOptions::plain(96)).unwrap();
    let mut weights = HashMap::new();
    for binding in &model.weights {
        let mut scratch = Vec::new();
        let bytes: Arc<[u8]> = materialise(&checkpoint, binding, 0..binding.rows(), &mut scratch).unwrap().into();
        weights.insert(binding.name.clone(), bytes);
    }
    GraphModel { model: Model { weights: Vec::new(), ..model }, weights }
}

#[test]
fn a_given_model_is_the_model_of_the_files() {
    for name in ["llama", "gemma3", "qwen3moe", "deepseek-v3"] {
        let checkpoint = Checkpoint::open(tiny::model(name)).unwrap();
        let mut read = Engine::load(&checkpoint, cpu(), &opts(), &mut |_, _| {}).unwrap();
        let given = given(name);
        let (mut last, mut total) = (0, 0);
        let mut told = |done, of| (last, total) = (done, of);
        let mut run = Engine::load_graph_model(&given, cpu(), &opts(), &mut told).unwrap();
        assert!(last == total && total > 0, "progress ends at {last} of {total}");
        assert_eq!((run.facts().kv, &run.facts().packed_weights), (Format::F32, &None));
        for prompt in [vec![3], vec![9, 8, 7, 6, 5], (0..70).map(|i| 3 + i * 5 % 240).collect()] {
            assert_eq!(greedy(&mut run, &prompt, 20), greedy(&mut read, &prompt, 20), "{name}");
        }
    }
}

#[test]
fn the_cache_has_as_many_blocks_as_are_asked_for() {
    let given = given("llama");
    for blocks in [3, 17] {
        let options = EngineOptions { cache: CacheSize::Blocks(blocks), ..opts() };
        let engine = Engine::load_graph_model(&given, cpu(), &options, &mut |_, _| {}).unwrap();
        assert_eq!(engine.kv().total_blocks(0), blocks as usize);
    }
}

#[test]
fn what_no_engine_can_run_is_refused_with_its_name() {
    let refused = |given: &GraphModel, part: &str| {
        let Err(error) = Engine::load_graph_model(given, cpu(), &opts(), &mut |_, _| {}) else {
            panic!("{part} is taken")
        };
        assert!(matches!(error, EngineError::GraphModel(_)) && error.to_string().contains(part), "{error}: {part}");
    };
    let whole = given("llama");
    let name =
        whole.model.weights.first().map_or_else(|| whole.weights.keys().next().unwrap().clone(), |w| w.name.clone());
    let mut short = whole.clone();
    short.weights.insert(name.clone(), vec![0; 12].into());
    refused(&short, "12 given");
    short.weights.remove(&name);
    refused(&short, &name);

    let with = |change: fn(&mut Model)| {
        let mut given = whole.clone();
        change(&mut given.model);
        given
    };
    refused(&with(|m| m.output = ModelOutput::Hidden { width: 64 }), "logits");
    refused(&with(|m| m.groups.clear()), "0");
    refused(&with(|m| m.vocab_size += 1), "257");
    refused(&with(|m| m.kv_cache_group[0].1 = 5), "group 5");
    refused(&with(|m| m.kv_cache_group.truncate(1)), "its KV caches are");
    refused(&with(|m| m.groups[0] = KvCacheSpec::Recurrent), "f32 [rows, channels]");
    refused(&with(|m| m.groups[0] = KvCacheSpec::Latent { rank: 8, rope: 8 }), "blocks of");
    refused(&with(|m| m.groups[0] = KvCacheSpec::Latent { rank: u32::MAX, rope: 1 }), "more elements than");
    refused(
        &with(|m| m.groups[0] = KvCacheSpec::Paged { kv_heads: 1, k_width: 16, v_width: 16, window: None }),
        "blocks of",
    );

    let mut b = GraphBuilder::new("odd");
    let odd = b.step_input("odd", Type::rows(Sym::Tokens, 8)).unwrap();
    let rows = b.step_input("rows", Type::new(DType::I32, [Sym::Rows])).unwrap();
    let logits = b.op("logits", Gather { axis: 0 }, &[odd, rows]).unwrap();
    b.output(logits);
    let model = Model { graph: b.finish(), vocab_size: 8, ..whole.model.clone() };
    refused(&GraphModel { model, weights: HashMap::new() }, "no step fills its step input `odd`");
    let options = EngineOptions { hidden: true, ..opts() };
    assert!(matches!(
        Engine::load_graph_model(&whole, cpu(), &options, &mut |_, _| {}),
        Err(EngineError::GraphModel(_))
    ));
}
