//! What a search finds for a graph, and how long looking takes: for the first time, and when the process has the result.

use super::settings::Case;
use crate::console::Console;
use crate::failure::Failure;
use std::ops::ControlFlow;
use std::time::Instant;
use yirage_hal::Device;
use yirage_ir::Graph;
use yirage_tune::{Cache, Doing, Outcome, SuperOptions, Verdict, superoptimize};

/// A finished search.
pub(crate) struct Searched {
    /// What came of it.
    pub(crate) outcome: Outcome,
    /// How long it took.
    pub(crate) seconds: f64,
    /// How long the second search of the same graph took.
    pub(crate) kept_seconds: f64,
}

impl Searched {
    /// Searches twice, with a cache of its own in between.
    ///
    /// # Errors
    /// What the search says.
    pub(crate) fn new(device: &dyn Device, graph: &Graph, case: &Case, console: &Console) -> Result<Searched, Failure> {
        let name = case.workload.name;
        let mut told = |doing: &Doing| {
            if let Doing::Candidate { number, of } = doing {
                console.note(&format!("searching: {name}, candidate {} of {of}", number + 1));
            }
            ControlFlow::Continue(())
        };
        let (cache, options) = (Cache::new(None), SuperOptions::default());
        let mut search = || {
            let start = Instant::now();
            let outcome = superoptimize(graph, device, &options, &cache, &mut told);
            outcome.map(|outcome| (outcome, start.elapsed().as_secs_f64())).map_err(|e| Failure::Other(e.to_string()))
        };
        let (outcome, seconds) = search()?;
        let (_, kept_seconds) = search()?;
        Ok(Searched { outcome, seconds, kept_seconds })
    }

    /// How many candidates ran beside the graph.
    pub(crate) fn timed(&self) -> usize {
        self.outcome.measured.iter().filter(|m| matches!(m.verdict, Verdict::Timed { .. })).count()
    }
}
