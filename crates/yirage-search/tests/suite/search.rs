//! The search: deterministic, bounded, and better than the input where a better graph is known.

#[path = "support/workloads.rs"]
mod workloads;

use crate::support::target;
use std::collections::HashMap;
use std::ops::ControlFlow;
use yirage_ir::rng::Rng;
use yirage_ir::tensor::Data;
use yirage_ir::{Dims, Graph, RegionKind, Tensor, interp, text, verify};
use yirage_plan::{DeviceLimits, KernelCapabilities, Target};
use yirage_search::{Candidate, SearchEnd, SearchError, SearchOptions, SearchProgress, SearchResult, Tilings, search};

/// The same, whose blocks have half a megabyte.
fn tiling_target() -> Target {
    Target {
        limits: DeviceLimits {
            block_bytes: Some(512 << 10),
            right_side_piece: Some(4096),
            ..DeviceLimits::aligned(64)
        },
        ..target()
    }
}

/// The same without tiled regions.
fn plain_target() -> Target {
    let mut target = target();
    target.kernels.retain(|kernel| !kernel.regions.contains(&RegionKind::Tiled));
    target
}

fn search_result(graph: &Graph, options: &SearchOptions) -> SearchResult {
    search(graph, &plain_target(), options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn shown(found: &SearchResult) -> String {
    let one = |c: &Candidate| format!("{:?} {:?}\n{}", c.estimate, c.rules, text::print(&c.graph));
    format!(
        "{:?}\n{}",
        (found.input, found.graphs, found.nodes, found.end),
        found.candidates.iter().map(one).collect::<String>()
    )
}

#[test]
fn each_workload_is_searched_and_its_candidates_have_its_interface() {
    for (name, graph) in workloads::all() {
        let options = SearchOptions { budget: 3_000, ..SearchOptions::default() };
        let found = search_result(&graph, &options);
        assert!(found.graphs >= 1 && found.input.ns > 0.0, "{name}");
        for candidate in &found.candidates {
            verify(&candidate.graph).unwrap();
            let types = |g: &Graph, ids: &[yirage_ir::ValueId]| {
                ids.iter().map(|&i| (g.value(i).name.clone(), g.ty(i).clone())).collect::<Vec<_>>()
            };
            assert_eq!(types(&candidate.graph, &candidate.graph.inputs), types(&graph, &graph.inputs), "{name}");
            assert_eq!(types(&candidate.graph, &candidate.graph.outputs), types(&graph, &graph.outputs), "{name}");
            assert!(!candidate.rules.is_empty(), "{name}");
        }
        let order: Vec<f64> = found.candidates.iter().map(|c| c.estimate.ns).collect();
        assert!(order.is_sorted(), "{name}: {order:?}");
    }
}

#[test]
fn a_norm_before_a_product_goes_behind_it() {
    let found =
        search_result(&workloads::rms_norm_linear(), &SearchOptions { budget: 20_000, ..SearchOptions::default() });
    let best = &found.candidates[0];
    assert!(best.estimate.ns < found.input.ns, "{} of {}", best.estimate.ns, found.input.ns);
    // Taking it apart alone lets the product read it as it is computed; whether the scale is better before or behind the
    // product is for the measurement.
    assert!(found.candidates.iter().any(|c| c.rules.contains(&"scale past product")), "{}", shown(&found));
}

#[test]
fn an_adapter_that_was_added_to_its_matrix_leaves_it() {
    // x (W + B A): the product of the two thin matrices is as large as W.
    let graph = text::parse(
        "graph g { input %x: f32[16, 256] input %w: f32[256, 1024] input %a: f32[256, 16] input %b: f32[16, 1024]
           %ab = contract(%a, %b): f32[256, 1024] %s = map{expr=\"add(x0, x1)\"}(%w, %ab): f32[256, 1024]
           %y = contract(%x, %s): f32[16, 1024] output %y }",
    )
    .unwrap();
    let found = search_result(&graph, &SearchOptions { budget: 20_000, ..SearchOptions::default() });
    let best = &found.candidates[0];
    assert!(best.estimate.ns < found.input.ns && best.estimate.ops < found.input.ops / 1.5, "{}", shown(&found));
    assert!(best.rules.contains(&"distribute") && best.rules.contains(&"reassociate"), "{:?}", best.rules);
}

#[test]
fn the_same_arguments_give_the_same_bytes() {
    for (name, graph) in workloads::all() {
        let options = SearchOptions { budget: 1_500, ..SearchOptions::default() };
        // Each run has hash tables with seeds of their own.
        let (first, again) = (shown(&search_result(&graph, &options)), shown(&search_result(&graph, &options)));
        assert_eq!(first, again, "{name}");
    }
}

#[test]
fn the_budget_and_whoever_watches_end_it() {
    let graph = workloads::group_query_attention();
    let small = search_result(&graph, &SearchOptions { budget: 40, ..SearchOptions::default() });
    assert_eq!(small.end, SearchEnd::Budget);
    // A graph that was begun is looked at to its end.
    assert!(small.nodes < 40 + 100, "{}", small.nodes);
    let none = search_result(&graph, &SearchOptions { budget: 0, ..SearchOptions::default() });
    assert_eq!((none.end, none.graphs, none.candidates.len()), (SearchEnd::Budget, 1, 0));
    let mut turns = 0;
    let stopped = search(&graph, &plain_target(), &SearchOptions::default(), &mut |progress| {
        turns += 1;
        assert!(progress.nodes > 0 && progress.best_ns.is_finite());
        if turns == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((stopped.unwrap().end, turns), (SearchEnd::Stopped, 3));
}

#[test]
fn graphs_with_states_and_broken_ones_are_refused() {
    let watch = &mut |_: &SearchProgress| ControlFlow::Continue(());
    let state = text::parse(
        "graph g { input %k: f32[Tokens, 64] input %v: f32[Tokens, 64] input %s: i32[Tokens] kv_cache %c: bf16[32, 1, 128]
           %d = kv_append(%c, %k, %v, %s): bf16[32, 1, 128] output %d }",
    );
    if let Ok(state) = state {
        let refused = search(&state, &target(), &SearchOptions::default(), watch);
        assert!(matches!(refused, Err(SearchError::State { .. })), "{refused:?}");
    }
    let mut broken = workloads::lora();
    broken.nodes.reverse();
    assert!(matches!(search(&broken, &target(), &SearchOptions::default(), watch), Err(SearchError::Graph(_))));
}

#[test]
fn products_with_what_is_around_them_become_one_kernel() {
    for (name, graph) in [
        ("gated MLP", workloads::gated_mlp()),
        ("LoRA", workloads::lora()),
        ("RMS norm and linear", workloads::rms_norm_linear()),
        ("group query attention", workloads::group_query_attention()),
        ("QK norm attention", workloads::qk_norm_attention()),
        ("gated MLP in f16", workloads::gated_mlp_f16()),
    ] {
        let options = SearchOptions { budget: 3_000, ..SearchOptions::default() };
        let found = search(&graph, &tiling_target(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
        let best = found.candidates.first().unwrap_or_else(|| panic!("{name}: {:?}", found.notes));
        assert!(best.estimate.ns < found.input.ns, "{name}: {}", shown(&found));
        assert_eq!(best.estimate.kernels, 1, "{name}: {}", shown(&found));
        assert_eq!(best.rules.last(), Some(&"tile"), "{name}");
    }
}

/// A workload of sizes at which references take no time.
fn small(graph: &Graph) -> Graph {
    let text = text::print(graph).replace("4096", "128").replace("6144", "192").replace("256", "64");
    text::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn inputs(graph: &Graph) -> HashMap<String, Tensor> {
    let mut rng = Rng::new(7);
    let of = |&id: &yirage_ir::ValueId| {
        let shape: Vec<usize> = graph.ty(id).shape.iter().map(|d| d.get(&Dims::default())).collect();
        let values = (0..shape.iter().product()).map(|_| rng.signed_f32()).collect();
        (graph.value(id).name.clone(), Tensor::f32(shape, values))
    };
    graph.inputs.iter().map(of).collect()
}

fn floats(t: &Tensor) -> &[f32] {
    let Data::F32(values) = &t.data else { panic!("floats wanted") };
    values
}

#[test]
fn every_candidate_gives_what_the_input_gives() {
    let loops = Tilings { loops: Some(vec![1, 2, 4]), ..Tilings::default() };
    let options = SearchOptions { budget: 2_000, keep: 24, tilings: loops, ..SearchOptions::default() };
    let mut tiled = 0;
    for (name, graph) in workloads::all() {
        let graph = small(&graph);
        let given = inputs(&graph);
        let want = interp::evaluate(&graph, &mut given.clone()).unwrap();
        let found = search(&graph, &tiling_target(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
        for candidate in &found.candidates {
            let got = interp::evaluate(&candidate.graph, &mut given.clone()).unwrap();
            tiled += usize::from(candidate.rules.last() == Some(&"tile"));
            for (want, got) in want.iter().zip(&got) {
                let largest = floats(want).iter().fold(0f32, |most, x| most.max(x.abs()));
                for (a, b) in floats(want).iter().zip(floats(got)) {
                    let within = 2e-5 * (largest + a.abs());
                    let shown = || format!("{:?}\n{}", candidate.rules, text::print(&candidate.graph));
                    assert!((a - b).abs() <= within, "{name}: {a} and {b}\n{}", shown());
                }
            }
        }
    }
    assert!(tiled > 20, "{tiled} tilings were seen");
}

#[test]
fn tilings_are_those_that_were_allowed() {
    let tilings = Tilings { grids: Some(vec![[16, 1, 1]]), loops: Some(vec![4]), ..Tilings::default() };
    let options = SearchOptions { budget: 1_000, keep: 64, tilings, ..SearchOptions::default() };
    let found = search(&workloads::lora(), &tiling_target(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let mut seen = 0;
    for candidate in &found.candidates {
        for node in &candidate.graph.nodes {
            if let yirage_ir::NodeKind::Region(region) = &node.kind {
                let tiled = region.tiled.as_ref().unwrap();
                assert_eq!((tiled.grid, tiled.loops), ([16, 1, 1], 4));
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "{:?}", found.notes);
}

#[test]
fn capabilities_decide_what_is_proposed_and_what_it_is_expected_to_cost() {
    let with = |change: fn(&mut KernelCapabilities)| {
        let mut target = tiling_target();
        change(&mut target.capabilities);
        target
    };
    let options = SearchOptions { budget: 1_000, ..SearchOptions::default() };
    let found =
        |graph: &Graph, target: &Target| search(graph, target, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let one_kernel = |found: &SearchResult| found.candidates.iter().any(|c| c.estimate.kernels == 1);
    let attention = workloads::group_query_attention();
    assert!(one_kernel(&found(&attention, &tiling_target())));
    assert!(!one_kernel(&found(&attention, &with(|has| has.flash_attention = false))));
    // The others have no scores: they are tiled as before.
    assert!(one_kernel(&found(&workloads::lora(), &with(|has| has.flash_attention = false))));

    let halves = workloads::gated_mlp_f16();
    let ops = |target: &Target| found(&halves, target).input.ops;
    assert!(ops(&with(|has| has.fp16 = true)) < ops(&tiling_target()));
    assert_eq!(ops(&with(|has| has.bf16 = true)), ops(&tiling_target()));
}
