//! The modes are real paths, each call has its own inputs, and what fails is told: the faults of the engine whose method
//! this is are tests here.

use crate::support::{
    self, ALWAYS, Faulty, bits, block, bound, cpu, devices, inputs, is_fused, paged, sampling, tokens,
};
use std::sync::atomic::Ordering;
use yirage_hal::HalError;
use yirage_ir::{Dims, Graph, ValueSource};
use yirage_plan::Plan;
use yirage_plancache::{
    BoundGraph, CacheError, CacheNotice, CacheOptions, CallError, CallShape, FusionDecision, FusionProfile, HostArray,
    Mode, PlanCache, ProfiledShape,
};

fn cache(device: std::sync::Arc<dyn yirage_hal::Device>) -> PlanCache {
    PlanCache::new(device, CacheOptions::default())
}

fn floats(outputs: &[HostArray]) -> Vec<f32> {
    outputs[0].bytes().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn near(a: &[HostArray], b: &[HostArray]) -> bool {
    let (a, b) = (floats(a), floats(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()))
}

#[test]
fn the_first_call_gives_what_native_gives() {
    for device in devices() {
        let (cache, graph) = (cache(device.clone()), bound(block()));
        let ins = inputs(graph.graph(), &tokens(5), 1);
        let native = cache.call(&graph, &ins, Mode::Native).unwrap();
        assert!(native.mode == Mode::Native && floats(&native.outputs).iter().any(|x| x.abs() > 0.01));
        for mode in [Mode::GraphReplay, Mode::Fusion] {
            let first = cache.call(&graph, &ins, mode).unwrap();
            let second = cache.call(&graph, &ins, mode).unwrap();
            assert_eq!((first.mode, first.hit, second.mode, second.hit), (mode, false, mode, true));
            assert!(near(&first.outputs, &native.outputs), "{} {mode}", device.info().backend);
            assert_eq!(bits(&first.outputs), bits(&second.outputs), "{} {mode}", device.info().backend);
            if mode == Mode::GraphReplay {
                assert_eq!(bits(&first.outputs), bits(&native.outputs), "the same plan gives the same bytes");
            }
        }
    }
}

/// Each input alone is another one: the result is that of native, which keeps no loaded plan.
fn each_input_counts(graph: Graph, dims: &Dims, all_differ: bool) {
    for device in devices() {
        let (cache, graph) = (cache(device), bound(graph.clone()));
        let before = inputs(graph.graph(), dims, 1);
        let others = inputs(graph.graph(), dims, 2);
        for mode in [Mode::GraphReplay, Mode::Fusion] {
            let first = cache.call(&graph, &before, mode).unwrap();
            for (place, other) in others.iter().enumerate() {
                let mut ins = before.clone();
                ins[place] = other.clone();
                let name = graph.interface().step_inputs[place].0.as_str();
                match name {
                    // Positions belong to sequences.
                    "positions" => ins[place + 1] = others[place + 1].clone(),
                    "seqs" => ins[place - 1] = others[place - 1].clone(),
                    _ => {}
                }
                let now = cache.call(&graph, &ins, mode).unwrap();
                assert!(now.hit, "{name}");
                let native = cache.call(&graph, &ins, Mode::Native).unwrap();
                match graph.graph().name.as_str() {
                    "sample" => assert_eq!(bits(&now.outputs), bits(&native.outputs), "{name}"),
                    _ => assert!(near(&now.outputs, &native.outputs), "{name}"),
                }
                assert!(!all_differ || bits(&now.outputs) != bits(&first.outputs), "{name} has no effect");
            }
            assert_eq!(bits(&cache.call(&graph, &before, mode).unwrap().outputs), bits(&first.outputs));
        }
    }
}

#[test]
fn a_replay_reads_every_input_anew() {
    each_input_counts(block(), &tokens(6), true);
    each_input_counts(paged(), &tokens(1), true);
    each_input_counts(sampling(), &tokens(3), false);
}

#[test]
fn a_llama_block_is_fused_into_fewer_kernels_with_equal_results() {
    for device in devices() {
        let (cache, graph) = (cache(device), bound(block()));
        let ins = inputs(graph.graph(), &tokens(4), 3);
        let fused = cache.call(&graph, &ins, Mode::Fusion).unwrap();
        let replayed = cache.call(&graph, &ins, Mode::GraphReplay).unwrap();
        assert_eq!((fused.mode, fused.notices), (Mode::Fusion, vec![]));
        assert!(near(&fused.outputs, &replayed.outputs));
        let stats = cache.stats();
        assert_eq!((stats.fusion_attempts, stats.fusion_successes, stats.fusion_fallbacks), (1, 1, 0));
        let steps = |mode| stats.plans.iter().find(|plan| plan.mode == mode).unwrap().steps;
        assert!(steps(Mode::Fusion) < steps(Mode::GraphReplay), "{:?}", stats.plans);
        assert!(stats.fusion_available);
    }
}

#[test]
fn a_fused_plan_that_fails_gives_way_with_the_same_result() {
    for (loads, steps, when) in [(0, ALWAYS, "loading"), (ALWAYS, 0, "its first step"), (ALWAYS, 2, "a later step")] {
        for device in devices() {
            let faulty = Faulty::new(device, |plan: &Plan| is_fused(plan), loads, steps);
            let (cache, graph) = (cache(faulty.clone()), bound(block()));
            let ins = inputs(graph.graph(), &tokens(5), 1);
            let native = cache.call(&graph, &ins, Mode::Native).unwrap();
            let calls: Vec<_> = (0..5).map(|_| cache.call(&graph, &ins, Mode::Fusion).unwrap()).collect();
            let fell = calls.iter().position(|call| call.mode == Mode::GraphReplay).unwrap();
            assert_eq!(fell, if steps == 2 { 2 } else { 0 }, "{when}");
            for (at, call) in calls.iter().enumerate() {
                assert!(near(&call.outputs, &native.outputs), "{when}, call {at}");
                let told = call
                    .notices
                    .iter()
                    .any(|told| matches!(told, CacheNotice::FellBack { why } if why.contains("injected")));
                assert_eq!(told, at == fell, "{when}, call {at}: {:?}", call.notices);
                assert_eq!(call.mode, if at < fell { Mode::Fusion } else { Mode::GraphReplay }, "{when}");
            }
            let stats = cache.stats();
            assert_eq!(stats.fusion_attempts, stats.fusion_successes + stats.fusion_fallbacks, "{when}");
            assert_eq!((stats.fusion_successes, stats.fusion_fallbacks), (u64::from(steps == 2), 1), "{when}");
            assert_eq!((stats.cache_hits, stats.cache_misses, stats.errors), (4, 1, 0), "{when}");
            assert_eq!(stats.plans.iter().map(|plan| plan.mode).collect::<Vec<_>>(), [Mode::GraphReplay], "{when}");
            assert_eq!(faulty.loaded.load(Ordering::SeqCst), 3, "native, the fused plan, and what took its place");
        }
    }
}

#[test]
fn an_error_is_never_swallowed_into_zeros() {
    let faulty = Faulty::new(cpu(), |_| true, ALWAYS, 0);
    let (cache, graph) = (cache(faulty.clone()), bound(block()));
    let ins = inputs(graph.graph(), &tokens(5), 1);
    let both = cache.call(&graph, &ins, Mode::Fusion).unwrap_err();
    assert!(matches!(both, CacheError::Both { .. }) && both.to_string().matches("injected").count() == 2, "{both}");
    for mode in [Mode::GraphReplay, Mode::Native] {
        let one = cache.call(&graph, &ins, mode).unwrap_err();
        assert!(matches!(one, CacheError::Call(CallError::Device(HalError::Device(_)))), "{one}");
    }
    let stats = cache.stats();
    assert_eq!((stats.cache_hits, stats.cache_misses, stats.recordings, stats.errors), (0, 2, 2, 2));
    assert_eq!((stats.fusion_attempts, stats.plans.len(), stats.bytes), (0, 0, 0));
    // The device is well again: nothing of the failures is kept.
    faulty.steps.store(ALWAYS, Ordering::SeqCst);
    assert_eq!(cache.call(&graph, &ins, Mode::Fusion).unwrap().mode, Mode::Fusion);
}

#[test]
fn nothing_takes_the_place_of_a_device_that_is_gone_or_where_it_is_not_wanted() {
    let mut gone = std::sync::Arc::into_inner(Faulty::new(cpu(), |plan: &Plan| is_fused(plan), ALWAYS, 0)).unwrap();
    gone.error = HalError::Lost("injected".into());
    let graph = bound(block());
    let ins = inputs(graph.graph(), &tokens(5), 1);
    let lost = cache(std::sync::Arc::new(gone)).call(&graph, &ins, Mode::Fusion).unwrap_err();
    assert_eq!(lost, CacheError::Call(CallError::Device(HalError::Lost("injected".into()))));
    let faulty = Faulty::new(cpu(), |plan: &Plan| is_fused(plan), ALWAYS, 0);
    let strict = PlanCache::new(faulty, CacheOptions { fallback_on_error: false, ..CacheOptions::default() });
    assert!(strict.call(&graph, &ins, Mode::Fusion).unwrap_err().to_string().contains("injected"));
    assert_eq!((strict.stats().errors, strict.stats().fusion_attempts), (1, 0));
}

#[test]
fn inputs_that_are_not_the_graphs_are_refused_before_anything_is_counted() {
    let (cache, graph) = (cache(cpu()), bound(block()));
    let ins = inputs(graph.graph(), &tokens(5), 1);
    let refused = |ins: &[HostArray]| cache.call(&graph, ins, Mode::Fusion).unwrap_err().to_string();
    assert!(refused(&ins[..2]).contains("2 inputs are given, the graph `block` takes 3"));
    let other = inputs(graph.graph(), &tokens(4), 1);
    let mixed = [ins[0].clone(), other[1].clone(), ins[2].clone()];
    assert!(refused(&mixed).contains("Tokens is 5 in the input `x` and 4 in `positions`"), "{}", refused(&mixed));
    let swapped = [ins[1].clone(), ins[0].clone(), ins[2].clone()];
    assert!(refused(&swapped).contains("input `x` is f32["), "{}", refused(&swapped));
    assert_eq!(cache.stats().cache_misses + cache.stats().errors, 0);
    let mut weights = support::weights(graph.graph(), 1);
    let missing = weights.pop().unwrap();
    let why = |weights: &[(String, HostArray)]| BoundGraph::new(block(), weights.to_vec()).unwrap_err().to_string();
    assert!(why(&weights).contains("weight `down`: it is not given"));
    assert!(why(&[&weights[..], &[missing.clone(), missing.clone()]].concat()).contains("it is given twice"));
    assert!(why(&[&weights[..], &[("more".into(), missing.1)]].concat()).contains("the graph has none"));
}

fn shape(batch: u64, sequence: u64, hidden: u64) -> CallShape {
    CallShape { batch, sequence, hidden }
}

#[test]
fn a_profile_decides_what_is_fused() {
    let row = |shape, unfused, fused| ProfiledShape { shape, unfused, fused };
    let rows = vec![
        row(shape(1, 4, 64), 10.0, 8.0),
        row(shape(1, 8, 64), 10.0, 9.5),
        row(shape(1, 16, 64), 10.0, 12.0),
        row(shape(2, 4, 64), 1.0, 2.0),
        row(shape(1, 32, 64), f64::NAN, 1.0),
    ];
    let profile = FusionProfile { rows, margin: 0.1 };
    let options = CacheOptions { profile: Some(profile), min_tensor_elements: 0, ..CacheOptions::default() };
    let (cache, graph) = (PlanCache::new(cpu(), options), bound(block()));
    let decided = |n: u32| cache.should_fuse(&graph, &inputs(graph.graph(), &tokens(n), 1)).unwrap();
    // Sequence, whether it is fused, and the sequence of the row that says so.
    let table =
        [(4, true, Some(4)), (7, true, Some(4)), (8, false, Some(8)), (15, false, Some(8)), (16, false, Some(16))];
    for (sequence, fuse, by) in table.into_iter().chain([(3, true, None), (33, false, Some(32))]) {
        let decision = decided(sequence);
        assert_eq!(decision.fuse(), fuse, "{sequence}: {decision}");
        match (decision, by) {
            (FusionDecision::Pays(row) | FusionDecision::DoesNotPay(row), Some(by)) => {
                assert_eq!(row.shape.sequence, by)
            }
            (FusionDecision::NotProfiled(of), None) => assert_eq!(of, shape(1, 3, 64)),
            other => panic!("{sequence}: {other:?}"),
        }
    }
    let called = cache.call(&graph, &inputs(graph.graph(), &tokens(8), 1), Mode::Fusion).unwrap();
    assert_eq!(called.mode, Mode::GraphReplay);
    assert!(
        matches!(&called.notices[..], [CacheNotice::NotFused(FusionDecision::DoesNotPay(_))]),
        "{:?}",
        called.notices
    );
    assert_eq!(cache.stats().fusion_attempts, 0);
}

#[test]
fn without_a_profile_graphs_are_fused_unless_they_are_small() {
    let graph = bound(block());
    let ins = inputs(graph.graph(), &tokens(5), 1);
    let decided = |options| PlanCache::new(cpu(), options).should_fuse(&graph, &ins).unwrap();
    let base = CacheOptions::default;
    assert_eq!(decided(base()), FusionDecision::NoProfile);
    let nodes = graph.graph().nodes.len();
    assert_eq!(
        decided(CacheOptions { min_nodes_for_fusion: nodes + 1, ..base() }),
        FusionDecision::FewNodes { nodes, least: nodes + 1 }
    );
    assert_eq!(
        decided(CacheOptions { max_graph_size: Some(nodes - 1), ..base() }),
        FusionDecision::ManyNodes { nodes, most: nodes - 1 }
    );
    assert_eq!(decided(CacheOptions { max_graph_size: Some(nodes), ..base() }), FusionDecision::NoProfile);
    // Its largest value is the weight of the feed-forward part.
    let few = FusionDecision::FewElements { elements: 96 * 64, least: 96 * 64 + 1 };
    assert_eq!(decided(CacheOptions { min_tensor_elements: 96 * 64 + 1, ..base() }), few);
    assert!(!few.fuse());
}

#[test]
fn a_graph_with_a_cache_is_refused() {
    let graph = yirage_ir::text::parse(include_str!("../../../yirage-plan/tests/work/layer.txt")).unwrap();
    assert!(graph.inputs_of(ValueSource::KvCache).next().is_some());
    assert!(matches!(BoundGraph::new(graph, Vec::new()), Err(CallError::Unsupported { .. })));
}

#[test]
fn a_new_plan_runs_so_often_before_its_first_call() {
    for warmup in [0, 1, 3] {
        let left = 100;
        let device = Faulty::new(cpu(), |_| true, ALWAYS, left);
        let options = CacheOptions { warmup, ..CacheOptions::default() };
        let (cache, graph) = (PlanCache::new(device.clone(), options), bound(block()));
        let call = || bits(&cache.call(&graph, &inputs(graph.graph(), &tokens(3), 1), Mode::Fusion).unwrap().outputs);
        let ran = || left - device.steps.load(std::sync::atomic::Ordering::SeqCst);
        let first = call();
        assert_eq!(ran(), 1 + warmup as usize);
        assert_eq!(call(), first);
        assert_eq!(ran(), 2 + warmup as usize, "only a new plan");
        assert_eq!((cache.stats().cache_hits, cache.stats().cache_misses), (1, 1), "calls are counted, not runs");
    }
}
