//! Mirage's six workloads on the first Vulkan device of this machine: the graphs as they are written, every graph that the
//! search proposes in their place, and what `superoptimize` measures there and takes.

use crate::support::device;
use std::ops::ControlFlow;
use yirage_conformance::GraphSetup;
use yirage_conformance::random::{apart, numbers, with_random_inputs};
use yirage_graph::workloads::{ALL, Parameters, Scale, Workload};
use yirage_hal::Device;
use yirage_ir::{DType, Graph, NodeKind, Tensor};
use yirage_search::{DeviceRates, SearchOptions, search};
use yirage_tune::{CandidateVerdict, SuperOptions, TuneCache, superoptimize};

/// How many of the workloads are Mirage's six.
const SIX: usize = 6;
/// Graphs of the search that are run.
const KEPT: usize = 6;

/// A workload at sizes that the reference computes.
fn small(workload: &Workload) -> Graph {
    workload.graph(Parameters { batch: 2, dtype: DType::F32, scale: Scale::Small }).unwrap()
}

fn has_tiles(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| matches!(&node.kind, NodeKind::Region(region) if region.tiled.is_some()))
}

/// Whether a graph, on the inputs of a setup, gives on the device what is wanted.
fn check(setup: &GraphSetup, graph: &Graph, device: &dyn Device, wanted: &[Tensor], what: &str) {
    let setup = GraphSetup { graph: graph.clone(), ..setup.clone() };
    let made = setup.run(device).unwrap_or_else(|why| panic!("{what}: {why:?}\n{}", yirage_ir::text::print(graph)));
    for (made, wanted) in made.iter().zip(wanted) {
        let far = apart(&numbers(made), &numbers(&wanted.data));
        assert!(far <= 1e-5, "{what}: {far:e} from the reference\n{}", yirage_ir::text::print(graph));
    }
}

#[test]
#[ignore = "needs a Vulkan device"]
fn workloads_and_all_that_the_search_makes_of_them_are_right() {
    let device = device();
    let mut tiled = 0;
    for workload in &ALL[..SIX] {
        let graph = small(workload);
        let setup = with_random_inputs(graph.clone(), 7);
        let wanted = setup.reference().unwrap();
        check(&setup, &graph, &*device, &wanted, workload.name);
        let options = SearchOptions { rates: DeviceRates::UNMEASURED, keep: KEPT, ..SearchOptions::default() };
        let found = search(&graph, &device.target(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
        for candidate in &found.candidates {
            let what = format!("{} by {:?}", workload.name, candidate.rules);
            check(&setup, &candidate.graph, &*device, &wanted, &what);
            tiled += usize::from(has_tiles(&candidate.graph));
        }
        println!("{}: {} candidates", workload.name, found.candidates.len());
    }
    println!("{tiled} candidates have tiles");
    assert!(tiled > 0);
}

#[test]
#[ignore = "needs a Vulkan device"]
fn superoptimize_measures_on_the_device_what_it_takes() {
    let device = device();
    for workload in &ALL[..SIX] {
        let graph = small(workload);
        let options =
            SuperOptions { budget: 2_000, keep: 4, warmup_iters: 1, profile_iters: 40, ..SuperOptions::default() };
        let cache = TuneCache::new(None);
        let outcome = superoptimize(&graph, &*device, &options, &cache, &mut |_| ControlFlow::Continue(())).unwrap();
        let setup = with_random_inputs(graph.clone(), 7);
        let wanted = setup.reference().unwrap();
        check(&setup, &outcome.graph, &*device, &wanted, workload.name);
        let timed = |verdict: &CandidateVerdict| matches!(verdict, CandidateVerdict::Timed { .. });
        let verdicts: Vec<String> =
            outcome.measured.iter().map(|of| format!("{:?} {}", of.rules, of.verdict)).collect();
        println!("{}: {}\n  {}", workload.name, outcome.input_stays(), verdicts.join("\n  "));
        assert!(outcome.measured.iter().any(|of| timed(&of.verdict)), "{}: {:?}", workload.name, outcome.notes);
        assert!(outcome.input_stays() || outcome.certificate.is_some());
    }
}
