//! Guesses go into a step and come out of it verified.

use super::core::Engine;
use super::event::Event;
use super::request_state::VerifiedToken;
use crate::error::EngineError;
use crate::sampling::{PositionLogprobs, SamplerOutput};
use crate::scheduler::{Batch, BatchEntry, EntryOutcome, Phase, SeqId, SeqUpdate, StepResult};
use crate::speculate::DecodingSequence;
use std::collections::HashMap;

impl Engine {
    /// Offers guesses for the next step to the scheduler.
    pub(super) fn propose(&mut self) -> Result<(), EngineError> {
        if self.speculator.is_off() {
            return Ok(());
        }
        let view = |seq: SeqId| {
            let of = self.requests.get(&seq)?;
            let (params, counts) = (&of.sampling, &of.counts);
            Some(DecodingSequence { seq, draft_capacity: self.scheduler.draft_capacity(seq), params, counts })
        };
        let views: Vec<DecodingSequence<'_>> = self.scheduler.decoding().filter_map(view).collect();
        let drafts = self.speculator.propose(&views, self.scheduler.has_prompts())?;
        drafts.into_iter().for_each(|(seq, drafts)| self.scheduler.propose(seq, drafts));
        Ok(())
    }

    /// Gives an MTP head the hidden states of the entry's tokens that are the sequence's, the first of which is the step's
    /// token `first`.
    pub(super) fn observe_hidden(
        &mut self,
        entry: &BatchEntry,
        first: usize,
        outcome: &EntryOutcome,
    ) -> Result<(), EngineError> {
        let Some(output) = self.all_hidden() else { return Ok(()) };
        let tokens = match outcome {
            EntryOutcome::Failed(_) => return Ok(()),
            EntryOutcome::Ran | EntryOutcome::Token(_) => entry.certain().len(),
            EntryOutcome::Run(run) => entry.certain().len() + run.len() - 1,
        };
        let rows = self.runner.all_rows(output)?;
        self.speculator.observe_hidden(entry.seq, entry.start as usize, first..first + tokens, rows);
        Ok(())
    }

    /// Keeps what belongs to a run's tokens: of the first for this step's events, of the others until they are delivered.
    pub(super) fn record_run(
        &mut self,
        entry: &BatchEntry,
        first_row: usize,
        run: Vec<SamplerOutput>,
        logprobs: &mut HashMap<SeqId, PositionLogprobs>,
    ) -> EntryOutcome {
        let tokens: Vec<u32> = run.iter().map(|sampled| sampled.token).collect();
        self.speculator.verified(entry.seq, entry.drafts as usize, tokens.len() - 1);
        let certain = entry.certain().len();
        let first_row = first_row + entry.rows.len() - entry.drafts as usize - 1;
        let mut run = run.into_iter().enumerate();
        logprobs.extend(run.next().and_then(|(_, first)| first.logprobs).map(|of| (entry.seq, of)));
        let ready = run.map(|(at, sampled)| VerifiedToken {
            row: first_row + at,
            position: entry.start as usize + certain - 1 + at,
            logprobs: sampled.logprobs,
        });
        if let Some(sequence) = self.requests.get_mut(&entry.seq) {
            sequence.ready = ready.collect();
        }
        EntryOutcome::Run(tokens)
    }

    /// Tells what a step took: the pace, and if only decoding sequences had part in it the speculator.
    pub(super) fn measured(&mut self, batch: &Batch, results: &[StepResult], seconds: f64) {
        if let Some(pace) = &mut self.pace {
            pace.measured(batch, seconds);
        }
        if batch.entries.iter().any(|entry| entry.phase != Phase::Decode) {
            return;
        }
        let tokens =
            |result: &StepResult| if let EntryOutcome::Run(run) = &result.outcome { run.len() as u32 } else { 0 };
        let of = |(entry, result): (&BatchEntry, &StepResult)| (entry.seq, entry.tokens.len() as u32, tokens(result));
        let seqs: Vec<_> = batch.entries.iter().zip(results).map(of).collect();
        self.speculator.ran(&seqs, seconds);
    }

    /// Reports the next token of each verified run.
    pub(super) fn deliver(&mut self) -> Result<Vec<Event>, EngineError> {
        let mut events = std::mem::take(&mut self.pending_events);
        for update in self.scheduler.deliver() {
            let ready = match update {
                SeqUpdate::Token { seq, .. } => self.requests.get_mut(&seq).and_then(|s| s.ready.pop_front()),
                SeqUpdate::Finished { .. } => None,
            };
            let mut event = self.report(update);
            if let (Event::Token { seq, logprobs, .. }, Some(ready)) = (&mut event, ready) {
                self.report_row(*seq, ready.position, ready.row, true, &mut events)?;
                *logprobs = ready.logprobs;
            }
            events.push(event);
        }
        Ok(events)
    }
}
