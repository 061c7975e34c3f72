//! What a step made known becomes events.

use super::core::Engine;
use super::event::Event;
use crate::error::EngineError;
use crate::scheduler::{BatchEntry, LogitsWanted, SeqId, SeqUpdate, SequenceUsage};

impl Engine {
    /// The event for one of the scheduler's updates; ended sequences are forgotten.
    pub(super) fn report(&mut self, update: SeqUpdate) -> Event {
        match update {
            SeqUpdate::Token { seq, token, position } => {
                if let Some(s) = self.requests.get_mut(&seq) {
                    s.counts.push(token);
                    s.restraint.push(token);
                }
                self.speculator.push(seq, token);
                Event::Token { seq, token, position, logprobs: None }
            }
            SeqUpdate::Finished { seq, reason, usage } => {
                let host_sampled = self.requests.remove(&seq).map_or(0, |request| request.host_sampled);
                let usage = SequenceUsage { host_sampled, ..usage };
                let gain = self.speculator.remove(seq);
                Event::Finished { seq, reason, usage, gain }
            }
        }
    }

    /// Logits and hidden states of the entry's rows, as far as they are wanted; those of drafts wait until they are
    /// delivered.
    pub(super) fn report_rows(
        &self,
        entry: &BatchEntry,
        first_row: usize,
        events: &mut Vec<Event>,
    ) -> Result<(), EngineError> {
        let certain = entry.rows.len() - entry.drafts as usize;
        let mut rows = entry.rows[..certain].iter().enumerate();
        rows.try_for_each(|(i, &r)| {
            let sampled = entry.sample && i + 1 == certain;
            self.report_row(entry.seq, (entry.start + r) as usize, first_row + i, sampled, events)
        })
    }

    /// Logits and hidden state of one row of the last step, as far as they are wanted. `sampled` is whether a token came of
    /// it.
    pub(super) fn report_row(
        &self,
        seq: SeqId,
        position: usize,
        row: usize,
        sampled: bool,
        events: &mut Vec<Event>,
    ) -> Result<(), EngineError> {
        let Some(request) = self.requests.get(&seq) else { return Ok(()) };
        let wants = |rows| rows == Some(LogitsWanted::All) || rows == Some(LogitsWanted::Last) && sampled;
        if wants(request.wanted.logits) {
            events.push(Event::Logits { seq, position, logits: self.runner.logits(row)?.to_vec() });
        }
        if wants(request.wanted.hidden) {
            events.push(Event::Hidden { seq, position, state: self.runner.hidden(row)?.to_vec() });
        }
        Ok(())
    }
}
