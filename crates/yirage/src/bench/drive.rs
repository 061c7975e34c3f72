//! Runs a test on an engine and times it.

use super::test::BenchTest;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::profiling::Profiling;
use crate::roofline::{RooflineTimes, of_model};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use yirage_engine::scheduler::{FinishReason, SeqId};
use yirage_engine::{Engine, Event, Request};
use yirage_hal::{Ceilings, Device, Roofline, SelectionReason};
use yirage_plan::Precision;
use yirage_plan::work::{SequenceSpan, Work};

/// New tokens that warm up: enough for the engine to choose an executor by measurement.
const WARM: u32 = 40;

/// An engine with what measures it.
pub(crate) struct Bench {
    engine: Engine,
    device: Arc<dyn Device>,
    precision: Precision,
    roofline: Roofline,
    /// Tokens of a step.
    batch: u32,
    profiling: Option<Profiling>,
}

/// One timed run.
#[derive(Clone, Debug)]
pub(crate) struct BenchSample {
    /// Seconds.
    pub(crate) seconds: f64,
    /// Tokens that were computed in them.
    pub(crate) tokens: u64,
    /// Bytes and operations of all steps.
    pub(crate) work: Work,
    /// Steps.
    pub(crate) steps: usize,
    /// The ceilings just before and after.
    pub(crate) ceilings: Ceilings,
    /// What the steps would take under them.
    pub(crate) least: Option<RooflineTimes>,
}

impl BenchSample {
    /// Tokens a second.
    pub(crate) fn rate(&self) -> f64 {
        self.tokens as f64 / self.seconds
    }
}

/// What was timed: seconds, and the sequences of every step.
struct TimedRun {
    seconds: f64,
    tokens: u64,
    steps: Vec<Vec<SequenceSpan>>,
}

impl Bench {
    /// Sets up the probes for `engine`, whose steps have at most `batch` tokens.
    ///
    /// # Errors
    /// [`CliFailure::Device`].
    pub(crate) fn new(
        engine: Engine,
        device: Arc<dyn Device>,
        precision: Precision,
        batch: u32,
        profiling: Option<Profiling>,
    ) -> Result<Bench, CliFailure> {
        let roofline = of_model(&*device, &engine, precision)?;
        Ok(Bench { engine, device, precision, roofline, batch, profiling })
    }

    /// Writes the profile, if one was asked for.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn write_profile(&self, console: &Console) -> Result<(), CliFailure> {
        self.profiling.as_ref().map_or(Ok(()), |profiling| profiling.write(console))
    }

    /// The engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The least time of a test under the ceilings as they are now; none where the device does not measure itself.
    ///
    /// # Errors
    /// [`CliFailure::Device`].
    pub(crate) fn predict(&mut self, test: &BenchTest) -> Result<Option<RooflineTimes>, CliFailure> {
        let ceilings = self.roofline.read()?;
        let steps = match test.prompt {
            0 => (0..test.generate).map(|i| vec![decoded(test.depth + i)]).collect(),
            _ => self.prompt_steps(test),
        };
        let work: Vec<Work> = steps.iter().map(|spans: &Vec<SequenceSpan>| self.engine.work(spans)).collect();
        Ok(RooflineTimes::of(&work, &ceilings, &*self.device, self.precision))
    }

    /// The executor of the steps that a test is made of; `measuring` while the engine has not decided.
    pub(crate) fn executor(&self, test: &BenchTest) -> String {
        let executors = self.engine.executors();
        let of = if test.prompt > 0 { executors.last() } else { executors.first() };
        of.map_or_else(String::new, |(_, kind, why)| match why {
            SelectionReason::Measuring { .. } => "measuring".into(),
            _ => kind.to_string(),
        })
    }

    /// Runs a test once without looking at the clock, with fewer tokens where that warms as well.
    ///
    /// # Errors
    /// As [`Bench::run`].
    pub(crate) fn warm_up(&mut self, test: &BenchTest) -> Result<(), CliFailure> {
        self.timed(&BenchTest { generate: test.generate.min(WARM), ..*test }, 0).map(|_| ())
    }

    /// Runs a test once. `turn` chooses the token ids of a prompt, so that the cache does not have it.
    ///
    /// # Errors
    /// Whatever the engine says; [`CliFailure::Other`] where a step failed or the cache could not hold the depth.
    pub(crate) fn run(&mut self, test: &BenchTest, turn: u32) -> Result<BenchSample, CliFailure> {
        let before = self.roofline.read()?;
        let timed = self.timed(test, turn + 1)?;
        let ceilings = before.between(&self.roofline.read()?);
        let works: Vec<Work> = timed.steps.iter().map(|spans| self.engine.work(spans)).collect();
        let least = RooflineTimes::of(&works, &ceilings, &*self.device, self.precision);
        let mut work = Work::default();
        works.iter().for_each(|w| work += w);
        let steps = works.len();
        Ok(BenchSample { seconds: timed.seconds, tokens: timed.tokens, work, steps, ceilings, least })
    }

    fn timed(&mut self, test: &BenchTest, turn: u32) -> Result<TimedRun, CliFailure> {
        if test.prompt > 0 { self.prompt(test, turn) } else { self.decode(test) }
    }

    /// Times a prompt behind what is cached of its beginning, and the tokens behind it, if any.
    fn prompt(&mut self, test: &BenchTest, turn: u32) -> Result<TimedRun, CliFailure> {
        let beginning = self.ids(test.depth, 0);
        if test.depth > 0 {
            self.alone(beginning.clone(), 1)?;
        }
        let mut ids = beginning;
        ids.extend(self.ids(test.prompt, turn + 1));
        let began = Instant::now();
        let cached = self.alone(ids, test.generate + 1)?;
        let seconds = began.elapsed().as_secs_f64();
        if cached != test.depth as usize {
            let what = format!("{test}: the cache had {cached} of the {} positions before the prompt", test.depth);
            return Err(CliFailure::Other(what));
        }
        Ok(TimedRun { seconds, tokens: test.tokens(), steps: self.prompt_steps(test) })
    }

    /// The steps of a prompt and of the tokens behind it.
    fn prompt_steps(&self, test: &BenchTest) -> Vec<Vec<SequenceSpan>> {
        let mut steps = Vec::new();
        let (mut start, end) = (test.depth, test.depth + test.prompt);
        while start < end {
            let tokens = self.batch.min(end - start);
            let rows = u32::from(start + tokens == end);
            steps.push(vec![SequenceSpan { start, tokens, rows }]);
            start += tokens;
        }
        steps.extend((0..test.generate).map(|i| vec![decoded(end + i)]));
        steps
    }

    /// Runs one request to its end: how much of its prompt was cached.
    fn alone(&mut self, prompt: Vec<u32>, new: u32) -> Result<usize, CliFailure> {
        self.engine.add(Request::greedy(prompt, new))?;
        loop {
            for event in self.step()? {
                if let Event::Finished { usage, .. } = event {
                    return Ok(usage.cached_tokens);
                }
            }
        }
    }

    /// Times tokens of sequences that decode together, from when the last of them has begun.
    fn decode(&mut self, test: &BenchTest) -> Result<TimedRun, CliFailure> {
        let new = test.context(self.batch).saturating_sub(test.depth.max(1)).max(1);
        let mut made: HashMap<SeqId, u32> = HashMap::new();
        for i in 0..test.sequences {
            // Sequences share nothing, so that the cache of each has to be read.
            let prompt = self.ids(test.depth.max(1), i);
            made.insert(self.engine.add(Request::greedy(prompt, new))?, 0);
        }
        while made.values().any(|&n| n == 0) {
            self.count(&mut made)?;
        }
        made.values_mut().for_each(|n| *n = 0);
        let mut steps = Vec::new();
        let mut tokens = 0;
        let began = Instant::now();
        while made.values().any(|&n| n < test.generate) {
            let spans = self.count(&mut made)?;
            tokens += spans.len() as u64;
            steps.push(spans);
        }
        let seconds = began.elapsed().as_secs_f64();
        self.cancel(made.keys().copied())?;
        Ok(TimedRun { seconds, tokens, steps })
    }

    /// Runs a step and counts the tokens it made; where each of them was computed.
    fn count(&mut self, made: &mut HashMap<SeqId, u32>) -> Result<Vec<SequenceSpan>, CliFailure> {
        let mut spans = Vec::new();
        for event in self.step()? {
            match event {
                Event::Token { seq, position, .. } => {
                    made.entry(seq).and_modify(|n| *n += 1);
                    spans.push(decoded((position as u32).saturating_sub(1)));
                }
                Event::Finished { reason, .. } => {
                    return Err(CliFailure::Other(format!("a sequence ended before its time: {reason:?}")));
                }
                _ => {}
            }
        }
        Ok(spans)
    }

    /// One step, which must get on and must not fail.
    fn step(&mut self) -> Result<Vec<Event>, CliFailure> {
        let events = self.engine.step()?;
        for event in &events {
            if let Event::Finished { reason: FinishReason::Error(why), .. } = event {
                return Err(CliFailure::Other(format!("a step failed: {why}")));
            }
        }
        if events.is_empty() && self.engine.is_idle() {
            return Err(CliFailure::Other("the engine stopped without ending the request; please report this".into()));
        }
        Ok(events)
    }

    fn cancel(&mut self, sequences: impl Iterator<Item = SeqId>) -> Result<(), CliFailure> {
        for seq in sequences {
            self.engine.finish(seq, FinishReason::Cancelled);
        }
        while !self.engine.is_idle() {
            self.engine.step()?;
        }
        Ok(())
    }

    /// Token ids that look like nothing, the same for the same `stream`.
    fn ids(&self, count: u32, stream: u32) -> Vec<u32> {
        let vocabulary = u64::from(self.engine.facts().vocabulary.max(1));
        let mut state = (u64::from(stream) << 32) ^ 0x9E37_79B9_7F4A_7C15;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % vocabulary) as u32
        };
        (0..count).map(next).collect()
    }
}

/// The step that computes position `at` alone, for its successor.
fn decoded(at: u32) -> SequenceSpan {
    SequenceSpan { start: at, tokens: 1, rows: 1 }
}
