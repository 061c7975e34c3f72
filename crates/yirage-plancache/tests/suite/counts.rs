//! What is counted is exact, what is kept is bounded, and callers may be many.

use crate::support::{self, ALWAYS, Faulty, bits, block, bound, cpu, inputs, is_fused, small, tokens, weights};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use yirage_hal::Device;
use yirage_plan::Plan;
use yirage_plancache::limits::NATIVE_PLANS;
use yirage_plancache::{BoundGraph, CacheNotice, CacheOptions, Mode, PlanCache, PlanCacheStats};
use yirage_sim::Sim;

fn cache(device: Arc<dyn Device>, bytes: u64) -> PlanCache {
    PlanCache::new(device, CacheOptions { bytes, ..CacheOptions::default() })
}

/// The counters alone.
fn counted(cache: &PlanCache) -> [u64; 6] {
    let s = cache.stats();
    [s.cache_hits, s.cache_misses, s.recordings, s.fusion_attempts, s.fusion_successes, s.fusion_fallbacks]
}

#[test]
fn a_scripted_sequence_gives_exact_counters() {
    // The third fused plan fails when it is loaded.
    let faulty = Faulty::new(cpu(), |plan: &Plan| is_fused(plan), 2, ALWAYS);
    let (cache, graph) = (cache(faulty, 1 << 30), bound(block()));
    let call = |n: u32, mode| cache.call(&graph, &inputs(graph.graph(), &tokens(n), 1), mode).unwrap();
    assert_eq!(counted(&cache), [0; 6]);
    // Hits, misses, recordings, attempts, successes, fall-backs.
    for (n, mode, wanted) in [
        (5, Mode::Fusion, [0, 1, 1, 1, 1, 0]),
        (5, Mode::Fusion, [1, 1, 1, 1, 1, 0]),
        (5, Mode::GraphReplay, [1, 2, 2, 1, 1, 0]),
        (5, Mode::Native, [1, 2, 2, 1, 1, 0]),
        (6, Mode::Fusion, [1, 3, 3, 2, 2, 0]),
        (5, Mode::GraphReplay, [2, 3, 3, 2, 2, 0]),
        (7, Mode::Fusion, [2, 4, 4, 3, 2, 1]),
        (7, Mode::Fusion, [3, 4, 4, 3, 2, 1]),
    ] {
        call(n, mode);
        assert_eq!(counted(&cache), wanted, "{n} {mode}");
    }
    let before = cache.stats();
    cache.set_fusion_enabled(false);
    assert!(!cache.fusion_enabled());
    for mode in Mode::ALL {
        assert_eq!(call(5, mode).mode, Mode::Native);
    }
    assert_eq!(
        cache.stats(),
        PlanCacheStats { enabled: false, ..before.clone() },
        "calls while disabled change nothing"
    );
    cache.set_fusion_enabled(true);
    assert_eq!(cache.stats(), before);
    assert_eq!(
        before.plans.iter().map(|p| (p.dims.tokens, p.mode)).collect::<Vec<_>>(),
        [(5, Mode::Fusion), (6, Mode::Fusion), (5, Mode::GraphReplay), (7, Mode::GraphReplay),]
    );
    cache.clear();
    let after = cache.stats();
    assert_eq!((after.plans.len(), after.bytes), (0, 0));
    assert_eq!(after, PlanCacheStats { plans: vec![], bytes: 0, ..before }, "what was counted stays");
    call(5, Mode::GraphReplay);
    assert_eq!(counted(&cache), [3, 5, 5, 3, 2, 1]);
}

#[test]
fn a_warm_replay_only_runs() {
    let device = Faulty::new(cpu(), |_| false, 0, 0);
    let (cache, graph) = (cache(device.clone(), 1 << 30), bound(block()));
    let call = |mode| cache.call(&graph, &inputs(graph.graph(), &tokens(1), 1), mode).unwrap();
    [Mode::Fusion, Mode::GraphReplay].into_iter().for_each(|mode| drop(call(mode)));
    let done = || (device.loaded.load(Ordering::SeqCst), cache.stats().compiled, cache.stats().recordings);
    assert_eq!(done(), (2, 2, 2));
    let (held, bytes) = (device.memory(), in_use(&*device));
    for _ in 0..100 {
        [Mode::Fusion, Mode::GraphReplay].into_iter().for_each(|mode| assert!(call(mode).hit));
    }
    assert_eq!((done(), device.memory()), ((2, 2, 2), held), "nothing is compiled, loaded or granted");
    call(Mode::Native);
    assert_eq!(done(), (3, 2, 2), "native is loaded for each call");
    assert_eq!(in_use(&*device), bytes, "and dropped after it");
}

/// Native plans are no kept plans: they are in no counter, and hold nothing on the device.
#[test]
fn native_is_compiled_once_for_its_sizes_and_loaded_for_each_call() {
    let device = Faulty::new(cpu(), |_| false, 0, 0);
    let cache = cache(device.clone(), 1 << 30);
    let (one, other) = (bound(block()), bound(small("one", 2.0)));
    let call = |graph: &BoundGraph, n: u32| {
        let called = cache.call(graph, &inputs(graph.graph(), &tokens(n), 1), Mode::Native).unwrap();
        assert_eq!((called.mode, called.hit), (Mode::Native, false));
        (cache.native_compilations(), device.loaded.load(Ordering::SeqCst), bits(&called.outputs))
    };
    let before = in_use(&*device);
    let first = call(&one, 5);
    assert_eq!((first.0, first.1), (1, 1));
    for loads in 2..6 {
        assert_eq!(call(&one, 5), (1, loads, first.2.clone()));
    }
    assert_eq!(call(&one, 6).0, 2, "another size");
    assert_eq!(call(&other, 5).0, 3, "another graph");
    assert_eq!(call(&bound(small("one", 3.0)), 5).0, 4, "another computation");
    assert_eq!(call(&one, 5).2, first.2);
    assert_eq!(in_use(&*device), before, "nothing stays on the device");
    assert_eq!(cache.stats(), PlanCacheStats { enabled: true, fusion_available: true, ..PlanCacheStats::default() });
    for n in 10..10 + NATIVE_PLANS as u32 {
        call(&one, n);
    }
    let many = cache.native_compilations();
    assert_eq!(call(&one, 5).0, many + 1, "the one used longest ago went");
    cache.clear();
    assert_eq!(call(&one, 5).0, many + 2, "all of them went");
}

/// Weights that kept plans have on the device serve native calls as well.
#[test]
fn native_uses_the_weights_that_are_on_the_device() {
    let device = cpu();
    let (cache, graph) = (cache(device.clone(), 1 << 30), bound(block()));
    let call = |mode| bits(&cache.call(&graph, &inputs(graph.graph(), &tokens(5), 1), mode).unwrap().outputs);
    let alone = call(Mode::Native);
    call(Mode::GraphReplay);
    let (weights, counted) = (device.memory().weights, cache.stats());
    assert_eq!(call(Mode::Native), alone);
    assert_eq!((device.memory().weights, cache.stats()), (weights, counted), "not even for the call are there more");
}

#[test]
fn every_part_of_the_key_counts() {
    let (cache, dims) = (cache(cpu(), 1 << 30), tokens(4));
    let call =
        |graph: &BoundGraph, n| cache.call(graph, &inputs(graph.graph(), &tokens(n), 1), Mode::Fusion).unwrap().hit;
    let one = bound(small("one", 2.0));
    assert!(!call(&one, 4) && call(&one, 4));
    // The same graph again, with copies of the same weights.
    let mut arrays = weights(one.graph(), 1);
    let own = BoundGraph::new(small("one", 2.0), arrays.clone()).unwrap();
    assert!(!call(&own, 4), "other weights");
    assert!(call(&BoundGraph::new(small("one", 2.0), arrays.clone()).unwrap(), 4), "the same weights");
    assert!(!call(&BoundGraph::new(small("one", 3.0), arrays.clone()).unwrap(), 4), "another computation");
    assert!(!call(&own, 5), "another size");
    let renamed = yirage_ir::text::print(&small("one", 2.0)).replace("%w", "%v");
    arrays[0].0 = "v".into();
    assert!(!call(&BoundGraph::new(yirage_ir::text::parse(&renamed).unwrap(), arrays.clone()).unwrap(), 4), "a name");
    let replay = cache.call(&own, &inputs(own.graph(), &dims, 1), Mode::GraphReplay).unwrap();
    assert!(!replay.hit, "another mode");
    let other =
        PlanCache::new(cpu(), CacheOptions { precision: yirage_plan::Precision::Fast, ..CacheOptions::default() });
    assert!(!other.call(&own, &inputs(own.graph(), &dims, 1), Mode::Fusion).unwrap().hit);
}

/// Bytes of weights and arenas that a device holds now.
fn in_use(device: &dyn Device) -> u64 {
    let memory = device.memory();
    memory.weights.used + memory.arena.used
}

#[test]
fn memory_is_bounded_and_given_back_to_the_byte() {
    let sim = Sim::default();
    for device in [support::open(&sim), cpu()] {
        let before = in_use(&*device);
        let graphs: Vec<BoundGraph> = (0..4).map(|i| bound(small("g", i as f32 + 0.5))).collect();
        let call = |cache: &PlanCache, i: usize| {
            cache.call(&graphs[i], &inputs(graphs[i].graph(), &tokens(4), 1), Mode::Fusion).unwrap()
        };
        let one = {
            let cache = cache(device.clone(), 1 << 30);
            call(&cache, 0);
            let bytes = cache.stats().bytes;
            assert!(bytes >= 512 * 4, "the weight alone: {bytes}");
            bytes
        };
        assert_eq!(in_use(&*device), before, "dropped with the cache");
        // Room for two of four.
        let cache = cache(device.clone(), 2 * one);
        let kept = || cache.stats().plans.len();
        let mut most = 0;
        for (i, hit) in [(0, false), (1, false), (0, true), (2, false), (0, true), (1, false), (2, false), (3, false)] {
            assert_eq!(call(&cache, i).hit, hit, "graph {i}");
            most = most.max(cache.stats().bytes);
        }
        assert_eq!((kept(), most <= 2 * one, cache.stats().evicted), (2, true, 4));
        assert!(in_use(&*device) > before);
        cache.clear();
        assert_eq!((in_use(&*device), cache.stats().bytes), (before, 0), "{}", device.info().backend);
    }
    let of_sim = &sim.memory_stats()[0];
    assert!(of_sim.bytes == 0 && of_sim.allocations == of_sim.frees, "{of_sim:?}");
}

#[test]
fn plans_of_the_same_weights_share_them() {
    let device = cpu();
    let (cache, graph) = (cache(device.clone(), 1 << 30), bound(block()));
    let weights = || device.memory().weights.used;
    let before = weights();
    cache.call(&graph, &inputs(graph.graph(), &tokens(4), 1), Mode::Fusion).unwrap();
    let once = weights();
    assert!(once > before);
    cache.call(&graph, &inputs(graph.graph(), &tokens(4), 1), Mode::GraphReplay).unwrap();
    cache.call(&graph, &inputs(graph.graph(), &tokens(5), 1), Mode::Fusion).unwrap();
    assert_eq!(weights(), once);
    cache.clear();
    assert_eq!(weights(), before);
}

#[test]
fn a_plan_that_does_not_fit_runs_and_is_not_kept() {
    let (cache, graph) = (cache(cpu(), 100), bound(block()));
    for _ in 0..2 {
        let called = cache.call(&graph, &inputs(graph.graph(), &tokens(4), 1), Mode::Fusion).unwrap();
        assert_eq!((called.mode, called.hit), (Mode::Fusion, false));
        assert!(matches!(&called.notices[..], [CacheNotice::NotKept { limit: 100, .. }]), "{:?}", called.notices);
    }
    assert_eq!((cache.stats().bytes, cache.stats().plans.len(), cache.stats().evicted), (0, 0, 0));
}

#[test]
fn callers_may_be_many() {
    const THREADS: usize = 8;
    const CALLS: usize = 30;
    let device = Faulty::new(cpu(), |_| false, 0, 0);
    let (cache, graph) = (cache(device.clone(), 1 << 30), bound(block()));
    let sizes = [3, 5, 7];
    let wanted: Vec<_> = sizes
        .iter()
        .flat_map(|&n| [1, 2].map(|seed| (n, seed)))
        .map(|(n, seed)| {
            let ins = inputs(graph.graph(), &tokens(n), seed);
            let own = PlanCache::new(cpu(), CacheOptions::default());
            let outputs =
                [Mode::Fusion, Mode::GraphReplay].map(|mode| bits(&own.call(&graph, &ins, mode).unwrap().outputs));
            (ins, outputs)
        })
        .collect();
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, graph, wanted, barrier) = (&cache, &graph, &wanted, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for call in 0..CALLS {
                    let (ins, outputs) = &wanted[(thread * 7 + call * 5) % wanted.len()];
                    let fused = (thread + call) % 2 == 0;
                    let mode = if fused { Mode::Fusion } else { Mode::GraphReplay };
                    let got = cache.call(graph, ins, mode).unwrap();
                    assert_eq!(bits(&got.outputs), outputs[usize::from(!fused)]);
                    assert_eq!(got.mode, mode);
                }
            });
        }
    });
    let stats = cache.stats();
    assert_eq!(stats.cache_hits + stats.cache_misses, (THREADS * CALLS) as u64);
    assert_eq!((stats.cache_misses, stats.recordings, stats.compiled), (6, 6, 6), "each plan is made once");
    assert_eq!((stats.fusion_attempts, stats.fusion_successes), (3, 3));
    assert_eq!(device.loaded.load(Ordering::SeqCst), 6);
}

#[test]
fn callers_may_be_many_while_plans_go() {
    let device = cpu();
    let before = in_use(&*device);
    let (cache, graph) = (cache(device.clone(), 150_000), bound(block()));
    let wanted: Vec<_> = (1..6)
        .map(|n| {
            let ins = inputs(graph.graph(), &tokens(n), 1);
            let outputs = bits(&cache.call(&graph, &ins, Mode::Native).unwrap().outputs);
            (ins, outputs)
        })
        .collect();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (cache, graph, wanted) = (&cache, &graph, &wanted);
            scope.spawn(move || {
                for call in 0..20 {
                    let (ins, outputs) = &wanted[(thread + call) % wanted.len()];
                    let got = cache.call(graph, ins, Mode::GraphReplay).unwrap();
                    assert_eq!(bits(&got.outputs), *outputs);
                    if (thread, call % 7) == (0, 6) {
                        cache.clear();
                    }
                }
            });
        }
    });
    let stats = cache.stats();
    assert_eq!((stats.cache_hits + stats.cache_misses, stats.errors), (120, 0));
    assert_eq!(stats.recordings, stats.cache_misses);
    cache.clear();
    assert_eq!(in_use(&*device), before);
}
