//! The whole way: kept results, search, proof, measurement, choice.

use crate::cache::TuneCache;
use crate::comparison::PairedComparison;
use crate::device::LoadedGraph;
use crate::error::TuneError;
use crate::key::TuneKey;
use crate::limits::{FASTER, PAIRS, SLOWER, WINS};
use crate::options::SuperOptions;
use crate::outcome::{CandidateResult, CandidateVerdict, SearchOutcome, SearchResultOrigin};
use crate::pairs::{PairLengths, compare};
use crate::prepared::PreparedGraph;
use crate::random::prepared;
use crate::rates::measure_rates;
use crate::stopwatch::{MonotonicStopwatch, Stopwatch};
use std::ops::ControlFlow;
use std::time::Duration;
use yirage_hal::Device;
use yirage_ir::Graph;
use yirage_search::equal::{Certificate, EqualityOptions, NotEqual, equivalent};
use yirage_search::{Candidate, SearchEnd, SearchOptions, SearchProgress, SearchResult, Tilings, search};

/// What shows that a candidate may stand for a graph.
pub type VerifyFn<'a> = dyn Fn(&Graph, &Graph) -> Result<Certificate, NotEqual> + 'a;

/// Hears how far the search is, and may end it: what is known then is the result, which is not kept.
pub type SearchWatcher<'a> = dyn FnMut(&SearchStatus) -> ControlFlow<()> + 'a;

/// What is being done.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SearchStatus {
    /// Looking for candidates.
    Searching(SearchProgress),
    /// Proving and measuring candidate `number` of `of`.
    Candidate {
        /// Counted from 0.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// Measuring the candidate of this number once more, before it is taken.
    Again(usize),
}

/// Everything that a search is done with.
pub struct SearchContext<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// Kept results.
    pub cache: &'a TuneCache,
    /// What takes times.
    pub stopwatch: &'a dyn Stopwatch,
    /// What shows equality.
    pub verify: &'a VerifyFn<'a>,
}

/// The fastest graph on `device` that computes what `graph` does: the input, or a candidate with a certificate that was
/// measurably faster. `watch` hears of the progress and may end the search.
///
/// # Errors
/// [`TuneError`]: options out of their range; a graph that does not hold together, has states, or has no plan on the device;
/// what the device met.
pub fn superoptimize(
    graph: &Graph,
    device: &dyn Device,
    options: &SuperOptions,
    cache: &TuneCache,
    watch: &mut SearchWatcher<'_>,
) -> Result<SearchOutcome, TuneError> {
    let verify = |a: &Graph, b: &Graph| equivalent(a, b, &EqualityOptions::default());
    let stopwatch = MonotonicStopwatch::start();
    superoptimize_with(graph, options, &SearchContext { device, cache, stopwatch: &stopwatch, verify: &verify }, watch)
}

/// [`superoptimize`] with any clock and verifier.
///
/// # Errors
/// As [`superoptimize`].
pub fn superoptimize_with(
    graph: &Graph,
    options: &SuperOptions,
    with: &SearchContext<'_>,
    watch: &mut SearchWatcher<'_>,
) -> Result<SearchOutcome, TuneError> {
    let tilings = options.checked()?;
    let key = TuneKey::of(graph, with.device, options);
    let mut notes = options.without_meaning(&with.device.target());
    if let Some(mut kept) = with.cache.find(&key, graph, options, &mut notes) {
        let new: Vec<String> = notes.into_iter().filter(|note| !kept.notes.contains(note)).collect();
        kept.notes.extend(new);
        return Ok(kept);
    }
    let mut ended = false;
    let mut told = |doing: &SearchStatus| {
        let flow = if ended { ControlFlow::Break(()) } else { watch(doing) };
        ended |= flow.is_break();
        flow
    };
    let found = explore(graph, options, tilings, with, &mut told, &mut notes)?;
    notes.extend(found.notes.iter().cloned());
    notes.push(summary(&found));
    let prepared = prepared(graph, options.dims, &options.compile)?;
    let mut measuring = Measuring { options, with, input: None, prepared, won: Vec::new(), cut: false };
    let mut measured = measuring.all(&found, &mut told)?;
    let taken = measuring.take(&found, &mut measured, &mut told)?;
    // Whoever has more time may find what this search did not come to.
    let cut = taken.is_none() && (measuring.cut || found.end == SearchEnd::Stopped);
    notes.extend(method(with.device, &measured));
    let (graph, rules) = (graph.clone(), Vec::new());
    let mut outcome =
        SearchOutcome { graph, certificate: None, rules, measured, notes, origin: SearchResultOrigin::Searched };
    if let Some((number, certificate)) = taken {
        outcome.graph = found.candidates[number].graph.clone();
        outcome.rules.clone_from(&outcome.measured[number].rules);
        outcome.certificate = Some(certificate);
    }
    if ended {
        outcome.notes.push("the search was ended: the result is not kept".into());
    } else {
        with.cache.insert(&key, &mut outcome, options, cut);
    }
    Ok(outcome)
}

/// How far the search came.
fn summary(found: &SearchResult) -> String {
    let end = match found.end {
        SearchEnd::Exhausted => "no rule makes another",
        SearchEnd::Budget => "the budget is used up",
        SearchEnd::Stopped => "the search was ended",
    };
    let (graphs, nodes, ns) = (found.graphs, found.nodes, found.input.ns);
    format!("{graphs} graphs of {nodes} nodes were looked at: {end}; the input is expected to take {ns:.0} ns")
}

/// How candidates were measured, where any was.
fn method(device: &dyn Device, measured: &[CandidateResult]) -> Option<String> {
    let timed = measured.iter().any(|of| matches!(of.verdict, CandidateVerdict::Timed { .. }));
    let info = device.info();
    timed.then(|| {
        format!(
            "candidates were measured on {} ({}), each in turns with the input graph, {PAIRS} pairs a look: one is taken \
             that is below {FASTER} of the input's time in the median, the faster one in {WINS} pairs and in its shortest \
             step, in two looks",
            info.backend, info.name
        )
    })
}

/// The compiler's search, with rates of the device.
fn explore(
    graph: &Graph,
    options: &SuperOptions,
    tilings: Tilings,
    with: &SearchContext<'_>,
    watch: &mut SearchWatcher<'_>,
    notes: &mut Vec<String>,
) -> Result<SearchResult, TuneError> {
    let rates = match options.rates {
        Some(rates) => rates,
        None => {
            let (rates, assumed) = measure_rates(with.device)?;
            notes.extend(assumed);
            rates
        }
    };
    let (dims, keep, compile) = (options.dims, options.keep, options.compile.clone());
    let wanted = SearchOptions { dims, rates, budget: options.nodes(), keep, compile, tilings };
    // Half of the time is left for the candidates.
    let limit = options.time_limit.map(|limit| limit / 2);
    let mut told = |progress: &SearchProgress| {
        if limit.is_some_and(|limit| with.stopwatch.elapsed() > limit) {
            return ControlFlow::Break(());
        }
        watch(&SearchStatus::Searching(*progress))
    };
    Ok(search(graph, &with.device.target(), &wanted, &mut told)?)
}

/// The input on the device, and what candidates are compared with.
struct Measuring<'a> {
    options: &'a SuperOptions,
    with: &'a SearchContext<'a>,
    /// Loaded for the first candidate.
    input: Option<LoadedGraph>,
    prepared: PreparedGraph,
    /// The candidates that won their first look: their numbers, what was seen, and their certificates.
    won: Vec<(usize, PairedComparison, Certificate)>,
    /// Whether the time limit left a candidate without a look.
    cut: bool,
}

impl Measuring<'_> {
    /// What becomes of each candidate at first.
    fn all(&mut self, found: &SearchResult, watch: &mut SearchWatcher<'_>) -> Result<Vec<CandidateResult>, TuneError> {
        // A quarter of the time is left for second looks.
        let limit = self.options.time_limit.map(|limit| limit * 3 / 4);
        let mut measured = Vec::with_capacity(found.candidates.len());
        for (number, candidate) in found.candidates.iter().enumerate() {
            let ended = watch(&SearchStatus::Candidate { number, of: found.candidates.len() }).is_break();
            let verdict = if ended {
                CandidateVerdict::NotRun("the search was ended".into())
            } else if self.is_over(limit) {
                self.cut = true;
                CandidateVerdict::NotRun("the time limit was reached".into())
            } else if candidate.estimate.ns > found.input.ns * SLOWER {
                let ns = found.input.ns;
                CandidateVerdict::NotRun(format!("it is expected to be slower than the input, which takes {ns:.0} ns"))
            } else {
                self.verdict(number, candidate)?
            };
            let rules = candidate.rules.iter().map(|&rule| rule.to_owned()).collect();
            measured.push(CandidateResult { rules, expected_ns: candidate.estimate.ns, verdict });
        }
        Ok(measured)
    }

    fn is_over(&self, limit: Option<Duration>) -> bool {
        limit.is_some_and(|limit| self.with.stopwatch.elapsed() > limit)
    }

    /// What becomes of a candidate at first.
    fn verdict(&mut self, number: usize, candidate: &Candidate) -> Result<CandidateVerdict, TuneError> {
        let certificate = match (self.with.verify)(&self.prepared.graph, &candidate.graph) {
            Ok(certificate) => certificate,
            Err(why) => return Ok(CandidateVerdict::Unproved(why.to_string())),
        };
        Ok(match self.compare_candidate(number, candidate)? {
            Err(why) => CandidateVerdict::NotRun(why.to_string()),
            Ok(first) => {
                if first.lost().is_none() {
                    self.won.push((number, first, certificate));
                }
                CandidateVerdict::Timed { first, second: None }
            }
        })
    }

    /// The candidate that is taken: of those that won, the fastest that wins once more, when both graphs lie elsewhere in
    /// memory and time has passed.
    fn take(
        &mut self,
        found: &SearchResult,
        measured: &mut [CandidateResult],
        watch: &mut SearchWatcher<'_>,
    ) -> Result<Option<(usize, Certificate)>, TuneError> {
        let mut won = std::mem::take(&mut self.won);
        won.sort_by(|(_, a, _), (_, b, _)| a.ratio.total_cmp(&b.ratio));
        for (number, first, certificate) in won {
            if watch(&SearchStatus::Again(number)).is_break() {
                break;
            }
            if self.is_over(self.options.time_limit) {
                self.cut = true;
                break;
            }
            self.input = None;
            let again = self.compare_candidate(number, &found.candidates[number])?;
            let taken = again.as_ref().is_ok_and(|look| look.lost().is_none());
            measured[number].verdict = match again {
                Ok(second) => CandidateVerdict::Timed { first, second: Some(second) },
                Err(why) => CandidateVerdict::NotRun(format!("when it was to be measured once more: {why}")),
            };
            if taken {
                return Ok(Some((number, certificate)));
            }
        }
        Ok(None)
    }

    /// A look at a candidate beside the input, or why the candidate cannot run.
    fn compare_candidate(
        &mut self,
        number: usize,
        candidate: &Candidate,
    ) -> Result<Result<PairedComparison, TuneError>, TuneError> {
        let device = self.with.device;
        let input = match &mut self.input {
            Some(input) => input,
            // The input has to run; only a candidate may fail.
            empty => {
                let input = empty.insert(LoadedGraph::new(device, self.prepared.clone())?);
                input.settle()?;
                input
            }
        };
        let prepared = PreparedGraph { graph: candidate.graph.clone(), ..self.prepared.clone() };
        let lengths = PairLengths { warmup: self.options.warmup_iters, steps: self.options.profile_iters };
        Ok(LoadedGraph::new(device, prepared).and_then(|mut loaded| {
            loaded.settle()?;
            compare(self.with.stopwatch, lengths, input, (number, &mut loaded))
        }))
    }
}
