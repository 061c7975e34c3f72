//! The search: deterministic, bounded, and better than the input where a better graph is known.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod support;
#[path = "support/workloads.rs"]
mod workloads;

use std::ops::ControlFlow;
use support::target;
use yirage_compile::search::{End, Found, SearchError, SearchOptions, search};
use yirage_ir::{Graph, text, verify};

fn found(graph: &Graph, options: &SearchOptions) -> Found {
    search(graph, &target(), options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn shown(found: &Found) -> String {
    let one = |c: &yirage_compile::search::Candidate| format!("{:?} {:?}\n{}", c.estimate, c.rules, text::print(&c.graph));
    format!("{:?}\n{}", (found.input, found.graphs, found.nodes, found.end), found.candidates.iter().map(one).collect::<String>())
}

#[test]
fn each_workload_is_searched_and_its_candidates_have_its_interface() {
    for (name, graph) in workloads::all() {
        let options = SearchOptions { budget: 3_000, ..SearchOptions::default() };
        let found = found(&graph, &options);
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
    let found = found(&workloads::rms_norm_linear(), &SearchOptions { budget: 20_000, ..SearchOptions::default() });
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
        "graph g { slot %x: f32[16, 256] slot %w: f32[256, 1024] slot %a: f32[256, 16] slot %b: f32[16, 1024]
           %ab = contract(%a, %b): f32[256, 1024] %s = map{expr=\"add(x0, x1)\"}(%w, %ab): f32[256, 1024]
           %y = contract(%x, %s): f32[16, 1024] output %y }",
    )
    .unwrap();
    let found = found(&graph, &SearchOptions { budget: 20_000, ..SearchOptions::default() });
    let best = &found.candidates[0];
    assert!(best.estimate.ns < found.input.ns && best.estimate.ops < found.input.ops / 1.5, "{}", shown(&found));
    assert!(best.rules.contains(&"distribute") && best.rules.contains(&"reassociate"), "{:?}", best.rules);
}

#[test]
fn the_same_arguments_give_the_same_bytes() {
    for (name, graph) in workloads::all() {
        let options = SearchOptions { budget: 1_500, ..SearchOptions::default() };
        // Each run has hash tables with seeds of their own.
        let (first, again) = (shown(&found(&graph, &options)), shown(&found(&graph, &options)));
        assert_eq!(first, again, "{name}");
    }
}

#[test]
fn the_budget_and_whoever_watches_end_it() {
    let graph = workloads::group_query_attention();
    let small = found(&graph, &SearchOptions { budget: 40, ..SearchOptions::default() });
    assert_eq!(small.end, End::Budget);
    // A graph that was begun is looked at to its end.
    assert!(small.nodes < 40 + 100, "{}", small.nodes);
    let none = found(&graph, &SearchOptions { budget: 0, ..SearchOptions::default() });
    assert_eq!((none.end, none.graphs, none.candidates.len()), (End::Budget, 1, 0));
    let mut turns = 0;
    let stopped = search(&graph, &target(), &SearchOptions::default(), &mut |progress| {
        turns += 1;
        assert!(progress.nodes > 0 && progress.best_ns.is_finite());
        if turns == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((stopped.unwrap().end, turns), (End::Stopped, 3));
}

#[test]
fn graphs_with_states_and_broken_ones_are_refused() {
    let watch = &mut |_: &yirage_compile::search::Progress| ControlFlow::Continue(());
    let state = text::parse(
        "graph g { slot %k: f32[Tokens, 64] slot %v: f32[Tokens, 64] slot %s: i32[Tokens] state %c: bf16[32, 1, 128]
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
