//! The whole way: kept results, search, proof, measurement, choice.

use crate::cache::Cache;
use crate::device::Loaded;
use crate::error::TuneError;
use crate::key::Key;
use crate::limits::{FASTER, PAIRS, SLOWER, WINS};
use crate::look::Look;
use crate::options::SuperOptions;
use crate::outcome::{Measured, Outcome, Told, Verdict};
use crate::pairs::{Lengths, compare};
use crate::prepared::Prepared;
use crate::random::prepared;
use crate::rates::measure_rates;
use crate::stopwatch::{MonotonicStopwatch, Stopwatch};
use std::ops::ControlFlow;
use std::time::Duration;
use yirage_compile::equal::{Certificate, EqualityOptions, NotEqual, equivalent};
use yirage_compile::search::{Candidate, End, Found, Progress, SearchOptions, Tilings, search};
use yirage_hal::Device;
use yirage_ir::Graph;

/// What shows that a candidate may stand for a graph.
pub type Verify<'a> = dyn Fn(&Graph, &Graph) -> Result<Certificate, NotEqual> + 'a;

/// Hears how far the search is, and may end it: what is known then is the result, which is not kept.
pub type Watch<'a> = dyn FnMut(&Doing) -> ControlFlow<()> + 'a;

/// What is being done.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Doing {
    /// Looking for candidates.
    Searching(Progress),
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
pub struct Surroundings<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// Kept results.
    pub cache: &'a Cache,
    /// What takes times.
    pub stopwatch: &'a dyn Stopwatch,
    /// What shows equality.
    pub verify: &'a Verify<'a>,
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
    cache: &Cache,
    watch: &mut Watch<'_>,
) -> Result<Outcome, TuneError> {
    let verify = |a: &Graph, b: &Graph| equivalent(a, b, &EqualityOptions::default());
    let stopwatch = MonotonicStopwatch::start();
    superoptimize_with(graph, options, &Surroundings { device, cache, stopwatch: &stopwatch, verify: &verify }, watch)
}

/// [`superoptimize`] with any clock and verifier.
///
/// # Errors
/// As [`superoptimize`].
pub fn superoptimize_with(
    graph: &Graph,
    options: &SuperOptions,
    with: &Surroundings<'_>,
    watch: &mut Watch<'_>,
) -> Result<Outcome, TuneError> {
    let tilings = options.checked()?;
    let key = Key::of(graph, with.device, options);
    let mut notes = options.without_meaning(&with.device.target());
    if let Some(mut kept) = with.cache.find(&key, graph, options, &mut notes) {
        let new: Vec<String> = notes.into_iter().filter(|note| !kept.notes.contains(note)).collect();
        kept.notes.extend(new);
        return Ok(kept);
    }
    let mut ended = false;
    let mut told = |doing: &Doing| {
        let flow = if ended { ControlFlow::Break(()) } else { watch(doing) };
        ended |= flow.is_break();
        flow
    };
    let found = explore(graph, options, tilings, with, &mut told, &mut notes)?;
    notes.extend(found.notes.iter().cloned());
    notes.push(summary(&found));
    let prepared = prepared(graph, options.dims, &options.compile)?;
    let mut measuring = Measuring { options, with, input: None, prepared, won: Vec::new() };
    let mut measured = measuring.all(&found, &mut told)?;
    let taken = measuring.take(&found, &mut measured, &mut told)?;
    notes.extend(method(with.device, &measured));
    let (graph, rules) = (graph.clone(), Vec::new());
    let mut outcome = Outcome { graph, certificate: None, rules, measured, notes, told: Told::Searched };
    if let Some((number, certificate)) = taken {
        outcome.graph = found.candidates[number].graph.clone();
        outcome.rules.clone_from(&outcome.measured[number].rules);
        outcome.certificate = Some(certificate);
    }
    if ended {
        outcome.notes.push("the search was ended: the result is not kept".into());
    } else {
        with.cache.keep(&key, &mut outcome, options);
    }
    Ok(outcome)
}

/// How far the search came.
fn summary(found: &Found) -> String {
    let end = match found.end {
        End::Exhausted => "no rule makes another",
        End::Budget => "the budget is used up",
        End::Stopped => "the search was ended",
    };
    let (graphs, nodes, ns) = (found.graphs, found.nodes, found.input.ns);
    format!("{graphs} graphs of {nodes} nodes were looked at: {end}; the input is expected to take {ns:.0} ns")
}

/// How candidates were measured, where any was.
fn method(device: &dyn Device, measured: &[Measured]) -> Option<String> {
    let timed = measured.iter().any(|of| matches!(of.verdict, Verdict::Timed { .. }));
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
    with: &Surroundings<'_>,
    watch: &mut Watch<'_>,
    notes: &mut Vec<String>,
) -> Result<Found, TuneError> {
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
    let mut told = |progress: &Progress| {
        if limit.is_some_and(|limit| with.stopwatch.elapsed() > limit) {
            return ControlFlow::Break(());
        }
        watch(&Doing::Searching(*progress))
    };
    Ok(search(graph, &with.device.target(), &wanted, &mut told)?)
}

/// The input on the device, and what candidates are compared with.
struct Measuring<'a> {
    options: &'a SuperOptions,
    with: &'a Surroundings<'a>,
    /// Loaded for the first candidate.
    input: Option<Loaded>,
    prepared: Prepared,
    /// The candidates that won their first look: their numbers, what was seen, and their certificates.
    won: Vec<(usize, Look, Certificate)>,
}

impl Measuring<'_> {
    /// What becomes of each candidate at first.
    fn all(&mut self, found: &Found, watch: &mut Watch<'_>) -> Result<Vec<Measured>, TuneError> {
        // A quarter of the time is left for second looks.
        let limit = self.options.time_limit.map(|limit| limit * 3 / 4);
        let mut measured = Vec::with_capacity(found.candidates.len());
        for (number, candidate) in found.candidates.iter().enumerate() {
            let ended = watch(&Doing::Candidate { number, of: found.candidates.len() }).is_break();
            let verdict = if ended {
                Verdict::NotRun("the search was ended".into())
            } else if self.is_over(limit) {
                Verdict::NotRun("the time limit was reached".into())
            } else if candidate.estimate.ns > found.input.ns * SLOWER {
                let ns = found.input.ns;
                Verdict::NotRun(format!("it is expected to be slower than the input, which takes {ns:.0} ns"))
            } else {
                self.verdict(number, candidate)?
            };
            let rules = candidate.rules.iter().map(|&rule| rule.to_owned()).collect();
            measured.push(Measured { rules, expected_ns: candidate.estimate.ns, verdict });
        }
        Ok(measured)
    }

    fn is_over(&self, limit: Option<Duration>) -> bool {
        limit.is_some_and(|limit| self.with.stopwatch.elapsed() > limit)
    }

    /// What becomes of a candidate at first.
    fn verdict(&mut self, number: usize, candidate: &Candidate) -> Result<Verdict, TuneError> {
        let certificate = match (self.with.verify)(&self.prepared.graph, &candidate.graph) {
            Ok(certificate) => certificate,
            Err(why) => return Ok(Verdict::Unproved(why.to_string())),
        };
        Ok(match self.look(number, candidate)? {
            Err(why) => Verdict::NotRun(why.to_string()),
            Ok(first) => {
                if first.lost().is_none() {
                    self.won.push((number, first, certificate));
                }
                Verdict::Timed { first, second: None }
            }
        })
    }

    /// The candidate that is taken: of those that won, the fastest that wins once more, when both graphs lie elsewhere in
    /// memory and time has passed.
    fn take(
        &mut self,
        found: &Found,
        measured: &mut [Measured],
        watch: &mut Watch<'_>,
    ) -> Result<Option<(usize, Certificate)>, TuneError> {
        let mut won = std::mem::take(&mut self.won);
        won.sort_by(|(_, a, _), (_, b, _)| a.ratio.total_cmp(&b.ratio));
        for (number, first, certificate) in won {
            if watch(&Doing::Again(number)).is_break() || self.is_over(self.options.time_limit) {
                break;
            }
            self.input = None;
            let again = self.look(number, &found.candidates[number])?;
            let taken = again.as_ref().is_ok_and(|look| look.lost().is_none());
            measured[number].verdict = match again {
                Ok(second) => Verdict::Timed { first, second: Some(second) },
                Err(why) => Verdict::NotRun(format!("when it was to be measured once more: {why}")),
            };
            if taken {
                return Ok(Some((number, certificate)));
            }
        }
        Ok(None)
    }

    /// A look at a candidate beside the input, or why the candidate cannot run.
    fn look(&mut self, number: usize, candidate: &Candidate) -> Result<Result<Look, TuneError>, TuneError> {
        let device = self.with.device;
        let input = match &mut self.input {
            Some(input) => input,
            // The input has to run; only a candidate may fail.
            empty => {
                let input = empty.insert(Loaded::new(device, self.prepared.clone())?);
                input.settle()?;
                input
            }
        };
        let prepared = Prepared { graph: candidate.graph.clone(), ..self.prepared.clone() };
        let lengths = Lengths { warmup: self.options.warmup_iters, steps: self.options.profile_iters };
        Ok(Loaded::new(device, prepared).and_then(|mut loaded| {
            loaded.settle()?;
            compare(self.with.stopwatch, lengths, input, (number, &mut loaded))
        }))
    }
}
