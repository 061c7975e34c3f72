//! The search for a faster graph before it is timed.

use crate::failure::Failure;
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::Instant;
use yirage_compile::Options;
use yirage_hal::Device;
use yirage_ir::Graph;
use yirage_plan::Precision;
use yirage_tune::{Cache, SuperOptions, superoptimize};

/// What a search found.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct Searched {
    /// How long it took, proofs and measurements included.
    seconds: f64,
    /// Candidates that were looked at closer.
    candidates: usize,
    /// The rules that made the graph that is timed; none where the input stays.
    rules: Vec<String>,
    /// What should be known of the way.
    notes: Vec<String>,
}

impl Searched {
    /// In words.
    pub(super) fn words(&self) -> String {
        let Searched { seconds, candidates, .. } = self;
        match self.rules.is_empty() {
            true => format!("the input graph stays after {seconds:.1} s and {candidates} candidates"),
            false => format!("by {} after {seconds:.1} s and {candidates} candidates", self.rules.join(", ")),
        }
    }
}

/// The fastest graph that a search finds, and what it did. Nothing is kept, so that each search is a cold one.
///
/// # Errors
/// [`Failure::Tune`].
pub(super) fn search(graph: &Graph, device: &dyn Device, precision: Precision) -> Result<(Graph, Searched), Failure> {
    let options = SuperOptions {
        compile: Options::new(precision),
        use_graph_dataset: false,
        use_cached_graphs: false,
        ..SuperOptions::default()
    };
    let began = Instant::now();
    let outcome = superoptimize(graph, device, &options, &Cache::new(None), &mut |_| ControlFlow::Continue(()))?;
    let (candidates, seconds) = (outcome.measured.len(), began.elapsed().as_secs_f64());
    Ok((outcome.graph, Searched { seconds, candidates, rules: outcome.rules, notes: outcome.notes }))
}
