//! One step: what the scheduler puts together is computed, sampled and committed.

use super::core::Engine;
use super::event::Event;
use super::submitted_step::SubmittedStep;
use super::verify::verify;
use crate::error::EngineError;
use crate::sampling::{PositionLogprobs, SampleError, SamplerOutput};
use crate::scheduler::{Batch, EntryOutcome, FinishReason, SeqId, StepResult};
use std::collections::HashMap;
use std::time::Instant;
use yirage_packed::PackedEntry as KeptEntry;

impl Engine {
    /// Runs one step. A request can fail; the engine goes on.
    ///
    /// Where the last step verified several tokens of a sequence, the next of them is reported instead, one a call, and
    /// nothing is computed: whoever ends a sequence after a token has not been told of any behind it, and neither is
    /// anything of them kept.
    ///
    /// On a device that takes several steps at once the next one is submitted before this one's tokens are here, where they
    /// alone decide it ([`SchedulerStats::ahead`](crate::scheduler::SchedulerStats) counts these). The same tokens come out either way; an end
    /// that a token or the caller decides is then reported one call later.
    ///
    /// # Errors
    /// Only the engine's own mistakes; a failing device ends the step's sequences with [`FinishReason::Error`](crate::scheduler::FinishReason::Error).
    pub fn step(&mut self) -> Result<Vec<Event>, EngineError> {
        // Whoever does not ask for them leaves none behind.
        drop(self.scheduler.take_admitted());
        if self.scheduler.has_ready() {
            return self.deliver();
        }
        let mut events = std::mem::take(&mut self.pending_events);
        let launched = match self.launched.take() {
            Some(launched) => launched,
            None => match self.begin()? {
                None => return Ok(events),
                Some(Ok(launched)) => launched,
                Some(Err(why)) => {
                    events.extend(self.fail_step(&why));
                    return Ok(events);
                }
            },
        };
        let next = self.launch_ahead(&launched);
        let SubmittedStep { batch, began, model, sampling } = launched;
        let computed = self.collect(model, sampling);
        let sampled = match self.confirm_weights().and(computed) {
            Ok(sampled) => sampled,
            Err(why) => {
                events.extend(self.fail_step(&why));
                return Ok(events);
            }
        };
        self.commit(&batch, sampled, began, &mut events)?;
        match next {
            None => {}
            Some(Ok(next)) => self.launched = Some(next),
            Some(Err(why)) => events.extend(self.fail_step(&why)),
        }
        if let Some(background) = &mut self.background {
            background.start();
        }
        Ok(events)
    }

    /// Plans a step and submits it; nothing where there is nothing to run.
    fn begin(&mut self) -> Result<Option<Result<SubmittedStep, String>>, EngineError> {
        let guessed = self.propose();
        self.limit_prompts();
        let batch = self.scheduler.schedule()?;
        if batch.entries.is_empty() {
            return Ok(None);
        }
        Ok(Some(guessed.map_err(|e| e.to_string()).and_then(|()| self.launch(batch, None))))
    }

    /// Tells the scheduler how much of prompts the next step may have if others wait for their next token.
    fn limit_prompts(&mut self) {
        if let Some(pace) = &self.pace {
            let decodes = self.scheduler.decoding().count() as u32;
            let chunk = self.scheduler.config().prefill_chunk;
            self.scheduler.limit_prefill(Some(pace.fits(decodes, self.scheduler.deepest_prompt(), chunk)));
        }
    }

    /// How long a step took that began then and is over now. One that was submitted behind another began when that was
    /// over.
    fn seconds_since(&mut self, began: Instant) -> f64 {
        let now = Instant::now();
        let before = self.over.replace(now);
        now.saturating_duration_since(before.map_or(began, |before| before.max(began))).as_secs_f64()
    }

    /// Tells the scheduler what a step gave, and the caller what it says of it.
    fn commit(
        &mut self,
        batch: &Batch,
        sampled: Vec<Result<SamplerOutput, SampleError>>,
        began: Instant,
        events: &mut Vec<Event>,
    ) -> Result<(), EngineError> {
        let seconds = self.seconds_since(began);
        let mut logprobs = HashMap::new();
        let results = self.results(batch, sampled, &mut logprobs, events)?;
        self.measured(batch, &results, seconds);
        for update in self.scheduler.commit(&results)? {
            let mut event = self.report(update);
            if let Event::Token { seq, logprobs: of, .. } = &mut event {
                *of = logprobs.remove(seq);
            }
            events.push(event);
        }
        Ok(())
    }

    /// What became of each entry. Rows that are wanted go into `events`, log-probabilities of first tokens into
    /// `logprobs`.
    fn results(
        &mut self,
        batch: &Batch,
        sampled: Vec<Result<SamplerOutput, SampleError>>,
        logprobs: &mut HashMap<SeqId, PositionLogprobs>,
        events: &mut Vec<Event>,
    ) -> Result<Vec<StepResult>, EngineError> {
        let mut sampled = sampled.into_iter();
        let mut results = Vec::with_capacity(batch.entries.len());
        let (mut first_row, mut first_token) = (0, 0);
        for entry in &batch.entries {
            self.report_rows(entry, first_row, events)?;
            let prompt = self.report_prompt(entry, &mut sampled, events);
            let rows: Vec<_> = match (self.samples(entry), self.chooses_on_host(entry.seq)) {
                (false, _) => Vec::new(),
                (true, false) => sampled.by_ref().take(1 + entry.drafts as usize).collect(),
                (true, true) => self.choose_on_host(entry, first_row),
            };
            let outcome = match prompt.map_err(|e| e.to_string()).and_then(|()| verify(entry.drafted(), rows)) {
                Err(_) if self.allows_none(entry) => EntryOutcome::Failed(FinishReason::NothingAllowed),
                Err(why) => EntryOutcome::Failed(FinishReason::Error(why)),
                Ok(run) if run.is_empty() && entry.sample => {
                    EntryOutcome::Failed(FinishReason::Error("the engine lost the sequence".into()))
                }
                Ok(run) if run.is_empty() => EntryOutcome::Ran,
                Ok(run) => self.record_run(entry, first_row, run, logprobs),
            };
            self.observe_hidden(entry, first_token, &outcome)?;
            first_token += entry.tokens.len();
            first_row += entry.rows.len();
            results.push(StepResult { seq: entry.seq, outcome });
        }
        Ok(results)
    }

    /// Whether the step that ran computed with the weights of the model: those that are mapped can go or change under
    /// it. What it computed is then of no use, whatever came of it.
    fn confirm_weights(&mut self) -> Result<(), String> {
        let confirmed = self.packed_entry.as_mut().map_or(Ok(()), KeptEntry::confirm);
        confirmed.map_err(|e| format!("repacked weights in use are gone or changed, start again: {e}"))
    }

    fn fail_step(&mut self, why: &str) -> Vec<Event> {
        let ended = self.scheduler.fail_step(why);
        ended.into_iter().map(|e| self.report(e)).collect()
    }
}
