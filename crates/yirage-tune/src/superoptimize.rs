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
    let mut notes = options.without_meaning();
    if let Some(mut kept) = with.cache.find(&key, graph, options, &mut notes) {
        kept.notes.extend(notes.into_iter().filter(|note| !kept.notes.contains(note)).collect::<Vec<_>>());
        return Ok(kept);
    }
    let found = look(graph, options, with, watch, &mut notes)?;
    let mut stopped = found.end == End::Stopped && options.time_limit.is_none();
    notes.extend(found.notes.iter().cloned());
    notes.push(format!(
        "{} graphs of {} nodes were looked at: {}; the input is expected to take {:.0} ns",
        found.graphs,
        found.nodes,
        match found.end {
            End::Exhausted => "no rule makes another",
            End::Budget => "the budget is used up",
            End::Stopped => "the search was ended",
        },
        found.input.ns
    ));
    let mut measuring = Measuring { options, with, input: None, prepared: prepared(graph, options.dims, &options.compile)? };
    let mut best: Option<(f64, usize, Certificate)> = None;
    let mut measured = Vec::with_capacity(found.candidates.len());
    for (number, candidate) in found.candidates.iter().enumerate() {
        let doing = Doing::Candidate { number, of: found.candidates.len() };
        stopped |= !stopped && watch(&doing).is_break();
        let over = options.time_limit.is_some_and(|limit| with.stopwatch.elapsed() > limit);
        let verdict = if stopped || over {
            Verdict::NotRun(if over { "the time limit was reached" } else { "the search was ended" }.into())
        } else if candidate.estimate.ns > found.input.ns * SLOWER {
            Verdict::NotRun(format!("it is expected to be slower than the input, which takes {:.0} ns", found.input.ns))
        } else {
            measuring.verdict(number, candidate, &mut best)?
        };
        let rules = candidate.rules.iter().map(|&rule| rule.to_owned()).collect();
        measured.push(Measured { rules, expected_ns: candidate.estimate.ns, verdict });
    }
    let mut outcome = Outcome { graph: graph.clone(), certificate: None, rules: Vec::new(), measured, notes, told: Told::Searched };
    if let Some((_, number, certificate)) = best {
        outcome.graph = found.candidates[number].graph.clone();
        outcome.rules.clone_from(&outcome.measured[number].rules);
        outcome.certificate = Some(certificate);
    }
    if stopped {
        outcome.notes.push("the search was ended: the result is not kept".into());
    } else {
        with.cache.keep(&key, &mut outcome, options);
    }
    Ok(outcome)
}

/// The compiler's search, with rates of the device.
fn look(
    graph: &Graph,
    options: &SuperOptions,
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
    let wanted = SearchOptions { dims, rates, budget: options.nodes(), keep, compile };
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
}

impl Measuring<'_> {
    /// What becomes of a candidate; where it is the fastest so far, `best` is its ratio, number and certificate.
    fn verdict(
        &mut self,
        number: usize,
        candidate: &Candidate,
        best: &mut Option<(f64, usize, Certificate)>,
    ) -> Result<Verdict, TuneError> {
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
        let mut loaded = match Loaded::new(device, prepared) {
            Ok(loaded) => loaded,
            Err(why) => return Ok(Verdict::NotRun(why.to_string())),
        };
        let lengths = Lengths { warmup: self.options.warmup_iters, steps: self.options.profile_iters };
        let ratio = match compare(self.with.stopwatch, lengths, input, (number, &mut loaded)) {
            Ok(ratio) => ratio,
            Err(why) => return Ok(Verdict::NotRun(why.to_string())),
        };
        // Not a number is not below.
        if ratio.median < FASTER && best.as_ref().is_none_or(|(so_far, ..)| ratio.median < *so_far) {
            *best = Some((ratio.median, number, certificate));
        }
        let (input_ns, candidate_ns) = (ratio.input * 1e9, ratio.candidate * 1e9);
        Ok(Verdict::Timed { ratio: ratio.median, input_ns, candidate_ns })
    }
}
