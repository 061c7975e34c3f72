//! What came of timing one graph, for people and programs.

use super::settings::GraphBenchCase;
use super::timed::{Round, TimedGraph};
use super::timed_search::TimedSearch;
use serde::Serialize;
use yirage_tune::Timing;

/// The figures of one graph: medians of its rounds.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct GraphBenchRow {
    workload: &'static str,
    batch: u32,
    dtype: String,
    backend: String,
    rounds: usize,
    /// Seconds of a fused step: the median of the rounds' medians.
    seconds: f64,
    /// The fastest round's median.
    lowest_seconds: f64,
    /// The slowest round's median.
    highest_seconds: f64,
    /// The kernel of each fused step.
    kernels: Vec<String>,
    unfused_seconds: f64,
    unfused_kernels: usize,
    /// Of what a search found; null where there was none.
    superoptimized: Option<GraphSearchMetrics>,
    /// Bytes at least.
    bytes: f64,
    /// Operations at least.
    ops: f64,
    /// The least time under the device's ceilings; null where it does not measure itself.
    limit_seconds: Option<f64>,
    /// What that time is of: `memory` or `arithmetic`.
    bound: Option<&'static str>,
    /// The least time divided by the time.
    share: Option<f64>,
}

/// The figures of what a search found for a graph.
#[derive(Serialize, Clone, PartialEq, Debug)]
struct GraphSearchMetrics {
    /// Seconds of a step: the median of the rounds' medians.
    seconds: f64,
    kernels: Vec<String>,
    /// The rules that made it; none where the graph stays as it is.
    rules: Vec<String>,
    /// Proved and timed by the search.
    candidates: usize,
    search_seconds: f64,
    /// The same search again, which finds its result kept in the process.
    kept_seconds: f64,
}

impl GraphBenchRow {
    /// Of a graph's rounds, one at least.
    pub(crate) fn new(case: &GraphBenchCase, backend: &str, graph: &TimedGraph, rounds: &[Round]) -> GraphBenchRow {
        let of = |figure: &dyn Fn(&Round) -> f64| sorted(rounds.iter().map(figure).collect());
        let times = of(&|round| round.fused.median());
        let least: Option<Vec<_>> = rounds.iter().map(|round| round.least).collect();
        let limits = least.map(|least| {
            let middle = |of: Vec<f64>| median(&sorted(of));
            let shares = rounds.iter().zip(&least).map(|(round, l)| l.seconds() / round.fused.median());
            let memory = middle(least.iter().map(|l| l.memory).collect());
            let arithmetic = middle(least.iter().map(|l| l.arithmetic).collect());
            let bound = if memory >= arithmetic { "memory" } else { "arithmetic" };
            (middle(least.iter().map(|l| l.seconds()).collect()), bound, middle(shares.collect()))
        });
        GraphBenchRow {
            workload: case.workload.name,
            batch: case.batch,
            dtype: case.dtype.to_string(),
            backend: backend.to_owned(),
            rounds: rounds.len(),
            seconds: median(&times),
            lowest_seconds: times[0],
            highest_seconds: times[times.len() - 1],
            kernels: graph.kernels().to_vec(),
            unfused_seconds: median(&of(&|round| round.unfused.median())),
            unfused_kernels: graph.unfused_kernels(),
            superoptimized: graph
                .searched()
                .map(|(searched, kernels)| GraphSearchMetrics::new(searched, kernels, rounds)),
            bytes: graph.bytes(),
            ops: graph.ops(),
            limit_seconds: limits.map(|(seconds, ..)| seconds),
            bound: limits.map(|(_, bound, _)| bound),
            share: limits.map(|(.., share)| share),
        }
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let micros = |seconds: f64| format!("{:.1} µs", seconds * 1e6);
        let GraphBenchRow { workload, batch, dtype, unfused_kernels, .. } = self;
        let (low, high) = (micros(self.lowest_seconds), micros(self.highest_seconds));
        let limit = match (self.limit_seconds, self.bound, self.share) {
            (Some(limit), Some(bound), Some(share)) => {
                format!("{:.0} % of its limit, {} of {bound}", share * 100.0, micros(limit))
            }
            _ => "a limit that is not known: the device does not measure itself".to_owned(),
        };
        let found = self.superoptimized.as_ref().map_or(String::new(), GraphSearchMetrics::line);
        format!(
            "{workload} batch {batch} {dtype}: {} ({low} to {high}) in {} kernels; unfused {} in {unfused_kernels}; {found}{limit}; \
             at least {:.1} MB and {:.3} GOP",
            micros(self.seconds),
            self.kernels.len(),
            micros(self.unfused_seconds),
            self.bytes / 1e6,
            self.ops / 1e9,
        )
    }
}

impl GraphSearchMetrics {
    fn new(searched: &TimedSearch, kernels: &[String], rounds: &[Round]) -> GraphSearchMetrics {
        let times = rounds.iter().filter_map(|round| round.search.as_ref().map(Timing::median)).collect();
        GraphSearchMetrics {
            seconds: median(&sorted(times)),
            kernels: kernels.to_vec(),
            rules: searched.outcome.rules.clone(),
            candidates: searched.timed(),
            search_seconds: searched.seconds,
            kept_seconds: searched.cached_seconds,
        }
    }

    /// A part of a line for people.
    fn line(&self) -> String {
        let GraphSearchMetrics { seconds, kernels, rules, candidates, search_seconds, kept_seconds } = self;
        let how = if rules.is_empty() { "nothing faster".to_owned() } else { rules.join(", ") };
        format!(
            "superoptimized {:.1} µs in {} ({how}; {candidates} candidates in {search_seconds:.1} s, kept {:.1} ms); ",
            seconds * 1e6,
            kernels.len(),
            kept_seconds * 1e3,
        )
    }
}

fn sorted(mut figures: Vec<f64>) -> Vec<f64> {
    figures.sort_by(f64::total_cmp);
    figures
}

/// The one in the middle; the upper of two.
fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}
