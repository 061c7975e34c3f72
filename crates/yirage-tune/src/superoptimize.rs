//! The whole way: kept results, search, proof, measurement, choice.

use crate::cache::Cache;
use crate::device::Loaded;
use crate::error::TuneError;
use crate::key::Key;
use crate::limits::{FASTER, SLOWER};
use crate::options::SuperOptions;
use crate::outcome::{Measured, Outcome, Told, Verdict};
use crate::pairs::{Lengths, compare};
use crate::prepared::Prepared;
use crate::random::prepared;
use crate::rates::measure_rates;
use crate::stopwatch::{MonotonicStopwatch, Stopwatch};
use std::ops::ControlFlow;
use yirage_compile::equal::{Certificate, EqualityOptions, NotEqual, equivalent};
use yirage_compile::search::{Candidate, End, Found, Progress, SearchOptions, search};
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
/// [`TuneError`]: a graph that does not hold together, has states, or has no plan on the device; what the device met.
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
    let found = look(graph, options, with, &mut told, &mut notes)?;
    notes.extend(found.notes.iter().cloned());
    notes.push(summary(&found));
    let prepared = prepared(graph, options.dims, &options.compile)?;
    let mut measuring = Measuring { options, with, input: None, prepared, best: None };
    let measured = measuring.all(&found, &mut told)?;
    let (graph, rules) = (graph.clone(), Vec::new());
    let mut outcome = Outcome { graph, certificate: None, rules, measured, notes, told: Told::Searched };
    if let Some((_, number, certificate)) = measuring.best {
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

/// The compiler's search, with rates of the device.
fn look(
    graph: &Graph,
    options: &SuperOptions,
    with: &Surroundings<'_>,
    watch: &mut Watch<'_>,
    notes: &mut Vec<String>,
) -> Result<Found, TuneError> {
    let tilings = options.tilings()?;
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
    /// The fastest candidate so far: its ratio, number and certificate.
    best: Option<(f64, usize, Certificate)>,
}

impl Measuring<'_> {
    /// What becomes of each candidate.
    fn all(&mut self, found: &Found, watch: &mut Watch<'_>) -> Result<Vec<Measured>, TuneError> {
        let mut measured = Vec::with_capacity(found.candidates.len());
        for (number, candidate) in found.candidates.iter().enumerate() {
            let ended = watch(&Doing::Candidate { number, of: found.candidates.len() }).is_break();
            let over = self.options.time_limit.is_some_and(|limit| self.with.stopwatch.elapsed() > limit);
            let verdict = if ended {
                Verdict::NotRun("the search was ended".into())
            } else if over {
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

    /// What becomes of a candidate.
    fn verdict(&mut self, number: usize, candidate: &Candidate) -> Result<Verdict, TuneError> {
        let certificate = match (self.with.verify)(&self.prepared.graph, &candidate.graph) {
            Ok(certificate) => certificate,
            Err(why) => return Ok(Verdict::Unproved(why.to_string())),
        };
        let device = self.with.device;
        let input = match &mut self.input {
            Some(input) => input,
            // The input has to run; only a candidate may fail.
            empty => empty.insert(Loaded::new(device, self.prepared.clone())?),
        };
        let prepared = Prepared { graph: candidate.graph.clone(), ..self.prepared.clone() };
        let lengths = Lengths { warmup: self.options.warmup_iters, steps: self.options.profile_iters };
        let timed = Loaded::new(device, prepared)
            .and_then(|mut loaded| compare(self.with.stopwatch, lengths, input, (number, &mut loaded)));
        let ratio = match timed {
            Ok(ratio) => ratio,
            Err(why) => return Ok(Verdict::NotRun(why.to_string())),
        };
        // What is not a number is not below.
        if ratio.median < FASTER && self.best.as_ref().is_none_or(|(so_far, ..)| ratio.median < *so_far) {
            self.best = Some((ratio.median, number, certificate));
        }
        let (input_ns, candidate_ns) = (ratio.input * 1e9, ratio.candidate * 1e9);
        Ok(Verdict::Timed { ratio: ratio.median, input_ns, candidate_ns })
    }
}
