//! How many tokens of prompts a step may have beside decodes, so that it takes no longer than it may.
//!
//! What steps took is measured: those that only decode by their number of tokens, and what a prompt adds to them by what
//! it has to compute, for each size of chunk. A chunk is the largest that is expected to fit. How far steps go beyond what
//! is expected is measured as well: where a machine is disturbed more, less of the time is planned.
//!
//! This module deliberately knows no clock (it is told seconds) and not which sequences run.

use crate::scheduler::{Batch, Phase};
use crate::speculate::Curve;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Duration;
use yirage_plan::work::{Costs, SequenceSpan};

/// Tokens of a chunk before any was measured: few enough for the slowest machine, enough to learn from.
const FIRST_CHUNK: u32 = 16;

/// The excess that is planned for at least: steps are now and then a tenth longer than expected.
const LEAST_EXCESS: f64 = 1.1;

/// The excess that is planned for at most: smaller chunks cost throughput, and rare steps of many times as long cannot be
/// planned for.
const MOST_EXCESS: f64 = 1.7;

/// Steps whose excess is kept. One of them may be longer than is planned for.
const EXCESS_WINDOW: usize = 128;

/// What computing a prompt takes, in operations: of a token, and of each position that it sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptWork {
    token: f64,
    position: f64,
}

impl PromptWork {
    /// Of a model of this context.
    pub(crate) fn new(costs: &Costs, context: u32) -> PromptWork {
        let last = context.saturating_sub(1);
        let of = |start| costs.step(&[SequenceSpan { start, tokens: 1, rows: 0 }]).ops();
        let token = of(0).max(1.0);
        let position = if last > 0 { (of(last) - token).max(0.0) / f64::from(last) } else { 0.0 };
        PromptWork { token, position }
    }

    /// Operations of `tokens` behind `start` others.
    fn of(self, tokens: u32, start: u32) -> f64 {
        let tokens = f64::from(tokens);
        tokens * (self.token + self.position * (f64::from(start) + tokens / 2.0))
    }

    /// The most tokens behind `start` others that take at most `operations`.
    fn most(self, operations: f64, start: u32) -> f64 {
        // Of what `of` says, solved for the tokens; in the form that does not divide by the second order.
        let first = self.token + self.position * f64::from(start);
        let root = (first * first + 2.0 * self.position * operations.max(0.0)).sqrt();
        2.0 * operations.max(0.0) / (first + root)
    }
}

/// What the newest steps took, in shares of what was expected of them.
#[derive(Clone, Debug, Default)]
struct Excess {
    ratios: VecDeque<f64>,
}

impl Excess {
    fn measured(&mut self, share: f64) {
        if share.is_finite() {
            self.ratios.truncate(EXCESS_WINDOW - 1);
            self.ratios.push_front(share);
        }
    }

    /// What all of them but the longest kept to.
    fn planned(&self) -> f64 {
        let (_, second) = self
            .ratios
            .iter()
            .fold((0.0_f64, 0.0_f64), |(first, second), &share| (first.max(share), second.max(share.min(first))));
        second.clamp(LEAST_EXCESS, MOST_EXCESS)
    }
}

/// Keeps steps within a time.
#[derive(Clone, Debug)]
pub(crate) struct StepPacer {
    /// Seconds that a step may take.
    most: f64,
    work: PromptWork,
    /// Seconds of steps that only decode, by their tokens.
    decodes: Curve,
    /// Seconds of an operation of prompts, by the size of the chunk: `s` is from 2^s tokens to the next power.
    prompts: Curve,
    excess: Excess,
}

impl StepPacer {
    pub(crate) fn new(most: Duration, work: PromptWork) -> StepPacer {
        let (decodes, prompts) = (Curve::default(), Curve::default());
        StepPacer { most: most.as_secs_f64(), work, decodes, prompts, excess: Excess::default() }
    }

    /// Takes what a step took.
    pub(crate) fn measured(&mut self, batch: &Batch, seconds: f64) {
        let (mut decodes, mut tokens, mut operations) = (0, 0, 0.0);
        for entry in &batch.entries {
            let count = entry.tokens.len() as u32;
            if entry.phase == Phase::Prefill {
                tokens += count;
                operations += self.work.of(count, entry.start);
            } else {
                decodes += count;
            }
        }
        // The first step of a size may touch memory for the first time, and says nothing of how even steps are.
        if tokens == 0 {
            if let (1.., Some(expected)) = (self.decodes.count(decodes), self.decodes.seconds(decodes)) {
                self.excess.measured(seconds / expected);
            }
            self.decodes.measured(decodes, seconds);
        } else {
            let (size, decoding) = (tokens.ilog2(), self.decoding(decodes));
            if let (1.., Some(expected)) = (self.prompts.count(size), self.prompts.seconds(size)) {
                self.excess.measured(seconds / (decoding + expected * operations));
            }
            self.prompts.measured(size, (seconds - decoding) / operations);
        }
    }

    /// Tokens of prompts for a step that decodes so many tokens: at most `chunk`, at least one. The prompts have computed
    /// `start` tokens.
    pub(crate) fn fits(&self, decodes: u32, start: u32, chunk: u32) -> NonZeroUsize {
        let chunk = chunk.max(1);
        let spare = self.most / self.excess.planned() - self.decoding(decodes);
        let fitting = (0..=chunk.ilog2()).rev().find_map(|size| {
            let seconds = self.prompts.seconds(size)?;
            let tokens = self.work.most(spare / seconds, start) as u32;
            (tokens >= 1 << size).then_some(tokens.min((2 << size) - 1))
        });
        let known = self.prompts.largest(1).is_some();
        let tokens = if known { fitting.unwrap_or(1) } else { FIRST_CHUNK };
        NonZeroUsize::new(tokens.min(chunk) as usize).unwrap_or(NonZeroUsize::MIN)
    }

    /// Seconds of decoding so many tokens alone. Before any was measured the prompt has the whole step.
    fn decoding(&self, tokens: u32) -> f64 {
        if tokens == 0 { 0.0 } else { self.decodes.seconds(tokens).unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{BatchEntry, SeqId};
    use yirage_ir::rng::Rng;

    fn entry(phase: Phase, tokens: usize, start: u32) -> BatchEntry {
        let (slots, tables, rows) = (Vec::new(), Vec::new(), Vec::new());
        BatchEntry {
            seq: SeqId(0),
            phase,
            tokens: vec![0; tokens],
            drafts: 0,
            start,
            slots,
            tables,
            rows,
            sample: false,
        }
    }

    fn batch(decodes: usize, prompt: usize, start: u32) -> Batch {
        let mut entries: Vec<_> = (0..decodes).map(|_| entry(Phase::Decode, 1, 9)).collect();
        entries.extend((prompt > 0).then(|| entry(Phase::Prefill, prompt, start)));
        Batch { step: 1, entries }
    }

    /// A machine on which small chunks are dear and depth costs; without what disturbs it.
    fn seconds(decodes: usize, prompt: usize, start: u32) -> f64 {
        let decoding = if decodes > 0 { 0.010 + 0.0003 * decodes as f64 } else { 0.0 };
        let chunk = if prompt > 0 { 0.004 } else { 0.0 };
        decoding + chunk + prompt as f64 * (0.0008 + 0.0000001 * f64::from(start))
    }

    const WORK: PromptWork = PromptWork { token: 1e9, position: 1e5 };

    /// Steps that a prompt of 4,000 tokens took among eight that decode, and those of them a fifth longer than 60 ms, on a
    /// machine on which one step in `every` takes `times` as long.
    fn a_long_prompt(every: usize, times: f64) -> (usize, usize) {
        let mut rng = Rng::new(7);
        let mut disturbed = |seconds: f64| {
            let slow = if rng.index(every) == 0 { times } else { 1.0 };
            seconds * slow * (0.95 + rng.index(100) as f64 / 1000.0)
        };
        let mut pace = StepPacer::new(Duration::from_millis(60), WORK);
        pace.measured(&batch(0, 200, 0), disturbed(seconds(0, 200, 0)));
        (0..60).for_each(|_| pace.measured(&batch(8, 0, 0), disturbed(seconds(8, 0, 0))));
        let (mut start, mut over, mut steps) = (0, 0, 0);
        while start < 4000 {
            let tokens = pace.fits(8, start, 512).get();
            let took = disturbed(seconds(8, tokens, start));
            pace.measured(&batch(8, tokens, start), took);
            over += usize::from(took > 1.2 * 0.060);
            start += tokens as u32;
            steps += 1;
        }
        (steps, over)
    }

    #[test]
    fn a_long_prompt_keeps_to_the_time_and_uses_it() {
        let (steps, over) = a_long_prompt(usize::MAX, 1.0);
        assert!(over <= 2, "{over} of {steps} steps are a fifth too long");
        assert!(steps <= 120, "{steps} steps where 100 would do");
    }

    #[test]
    fn less_is_planned_where_steps_are_often_longer_than_expected() {
        let (steps, over) = a_long_prompt(16, 1.8);
        assert!(over * 100 <= 2 * steps, "{over} of {steps} steps are a fifth too long");
        assert!(steps <= 240, "{steps} steps");
        let (steps, over) = a_long_prompt(50, 4.0);
        assert!(over * 100 <= 4 * steps, "what takes four times as long stays so: {over} of {steps}");
        assert!(steps <= 240, "{steps} steps");
    }

    #[test]
    fn a_time_that_nothing_keeps_to_leaves_one_token() {
        let mut pace = StepPacer::new(Duration::from_millis(1), WORK);
        assert_eq!(pace.fits(8, 0, 512).get(), FIRST_CHUNK as usize, "nothing is known");
        assert_eq!(pace.fits(8, 0, 3).get(), 3);
        pace.measured(&batch(0, 512, 0), seconds(0, 512, 0));
        pace.measured(&batch(8, 0, 0), seconds(8, 0, 0));
        assert_eq!(pace.fits(8, 0, 512).get(), 1);
    }

    #[test]
    fn more_time_and_less_depth_are_more_tokens_up_to_the_chunk() {
        let with = |milliseconds| {
            let mut pace = StepPacer::new(Duration::from_millis(milliseconds), WORK);
            (0..3).for_each(|_| pace.measured(&batch(0, 128, 0), seconds(0, 128, 0)));
            pace
        };
        let fits = |milliseconds, start| with(milliseconds).fits(0, start, 512).get();
        assert!(fits(20, 0) < fits(40, 0) && fits(40, 0) > fits(40, 20_000), "{} {}", fits(40, 0), fits(40, 20_000));
        assert_eq!(fits(10_000, 0), 512);
        let mut still = with(20);
        still.measured(&batch(0, 128, 0), 0.0);
        still.measured(&batch(0, 128, 0), f64::NAN);
        assert_eq!(still.fits(0, 0, 512).get(), fits(20, 0), "a clock that stands still says nothing");
    }

    #[test]
    fn the_most_tokens_are_those_whose_work_fits() {
        for (start, position) in [(0, 1e5), (4000, 1e5), (9, 0.0)] {
            let work = PromptWork { token: 1e9, position };
            let tokens = work.most(work.of(300, start), start);
            assert!((tokens - 300.0).abs() < 1e-6, "{tokens}");
        }
    }
}
