//! The whole way with the real verifier: what the search finds is proved, and what is chosen has a certificate.

use std::ops::ControlFlow;
use std::time::Duration;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, OpenOptions};
use yirage_ir::{Graph, text};
use yirage_search::DeviceRates;
use yirage_search::equal::{EqualityOptions, equivalent};
use yirage_tune::{
    CandidateVerdict, SearchContext, SearchOutcome, Stopwatch, SuperOptions, TimedGraphId, TuneCache, TuneError,
    superoptimize_with,
};

/// Every candidate takes half of the input's time, and none is run.
struct Half;

impl Stopwatch for Half {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    fn time(&self, graph: TimedGraphId, _: &mut dyn FnMut() -> Result<(), TuneError>) -> Result<Duration, TuneError> {
        Ok(Duration::from_millis(if graph == TimedGraphId::Input { 2 } else { 1 }))
    }
}

fn proved(graph: &str) -> (Graph, SearchOutcome) {
    let graph = text::parse(graph).unwrap();
    let device = Reference::new().open(0, &OpenOptions::default()).unwrap().0;
    let verify = |a: &Graph, b: &Graph| equivalent(a, b, &EqualityOptions::default());
    let cache = TuneCache::new(None);
    let with = SearchContext { device: &*device, cache: &cache, stopwatch: &Half, verify: &verify };
    let options = SuperOptions {
        budget: 400,
        keep: 6,
        warmup_iters: 1,
        profile_iters: 1,
        rates: Some(DeviceRates::UNMEASURED),
        ..SuperOptions::default()
    };
    let outcome = superoptimize_with(&graph, &options, &with, &mut |_| ControlFlow::Continue(())).unwrap();
    (graph, outcome)
}

#[test]
fn what_is_chosen_has_a_certificate_of_the_verifier() {
    let graphs = [
        // A norm before a product.
        "graph norm { input %x: f32[2, 64] input %w: f32[64, 128]
           %n = rms_norm{eps=1e-6, width=64, unit_offset=false}(%x): f32[2, 64]
           %y = contract(%n, %w): f32[2, 128] output %y }",
        // A thin product beside a wide one.
        "graph lora { input %x: f32[4, 64] input %w: f32[64, 128] input %a: f32[64, 4] input %b: f32[4, 128]
           %d = contract(%x, %a): f32[4, 4] %e = contract(%d, %b): f32[4, 128] %c = contract(%x, %w): f32[4, 128]
           %y = map{expr=\"add(x0, x1)\"}(%c, %e): f32[4, 128] output %y }",
        // Two products of one input.
        "graph gated { input %x: f32[4, 64] input %v: f32[64, 128] input %w: f32[64, 128]
           %p = contract(%x, %v): f32[4, 128] %q = contract(%x, %w): f32[4, 128]
           %y = map{expr=\"mul(silu(x0), x1)\"}(%p, %q): f32[4, 128] output %y }",
    ];
    for graph in graphs {
        let (input, outcome) = proved(graph);
        let shown = format!("{:#?}\n{:?}", outcome.measured, outcome.notes);
        assert!(!outcome.input_stays(), "{}: {shown}", input.name);
        outcome.certificate.as_ref().unwrap().check(&input, &outcome.graph).unwrap();
        assert!(outcome.measured.iter().any(|m| matches!(m.verdict, CandidateVerdict::Timed { .. })), "{shown}");
        let tiled = |m: &&yirage_tune::CandidateResult| m.rules.last().is_some_and(|rule| rule == "tile");
        let unproved =
            outcome.measured.iter().filter(tiled).find(|m| matches!(m.verdict, CandidateVerdict::Unproved(_)));
        assert!(unproved.is_none(), "{}: {shown}", input.name);
    }
}
