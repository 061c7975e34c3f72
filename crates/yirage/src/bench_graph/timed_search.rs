//! What a search finds for a graph, and how long looking takes: for the first time, and when the process has the result.

use super::settings::GraphBenchCase;
use crate::console::Console;
use crate::failure::CliFailure;
use std::ops::ControlFlow;
use std::time::Instant;
use yirage_hal::Device;
use yirage_ir::Graph;
use yirage_tune::{CandidateVerdict, SearchOutcome, SearchStatus, SuperOptions, TuneCache, superoptimize};

/// A finished search.
pub(crate) struct TimedSearch {
    /// What came of it.
    pub(crate) outcome: SearchOutcome,
    /// How long it took.
    pub(crate) seconds: f64,
    /// How long the second search of the same graph took.
    pub(crate) cached_seconds: f64,
}

impl TimedSearch {
    /// Searches twice, with a cache of its own in between.
    ///
    /// # Errors
    /// What the search says.
    pub(crate) fn new(
        device: &dyn Device,
        graph: &Graph,
        case: &GraphBenchCase,
        console: &Console,
    ) -> Result<TimedSearch, CliFailure> {
        let name = case.workload.name;
        let mut told = |doing: &SearchStatus| {
            if let SearchStatus::Candidate { number, of } = doing {
                console.note(&format!("searching: {name}, candidate {} of {of}", number + 1));
            }
            ControlFlow::Continue(())
        };
        let (cache, options) = (TuneCache::new(None), SuperOptions::default());
        let mut search = || {
            let start = Instant::now();
            let outcome = superoptimize(graph, device, &options, &cache, &mut told);
            outcome
                .map(|outcome| (outcome, start.elapsed().as_secs_f64()))
                .map_err(|e| CliFailure::Other(e.to_string()))
        };
        let (outcome, seconds) = search()?;
        let (_, kept_seconds) = search()?;
        Ok(TimedSearch { outcome, seconds, cached_seconds: kept_seconds })
    }

    /// How many candidates ran beside the graph.
    pub(crate) fn timed(&self) -> usize {
        self.outcome.measured.iter().filter(|m| matches!(m.verdict, CandidateVerdict::Timed { .. })).count()
    }
}
