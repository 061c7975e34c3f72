//! A step that is planned before the tokens of the one in flight are known.
//!
//! Where a step only gives each running sequence its next token, the step behind it is known but for these tokens, which
//! the device has. What they decide (an end by a stop token, a failing row) takes effect one step later: the sequence is
//! computed once more for nothing. A row without a token is none that a model knows: what follows it is not a number, in
//! that row alone.

use super::batch::{Batch, EntryOutcome, StepResult};
use super::core::Scheduler;
use super::error::CommitError;
use super::phase::Phase;
use super::update::SeqUpdate;

/// Stands for a token that the step in flight samples: no vocabulary has it.
pub const UNKNOWN: u32 = u32::MAX;

impl Scheduler {
    /// Plans the step behind the one in flight: each of its entries runs one token, [`UNKNOWN`], which the entry at the same
    /// place of the step in flight samples. None where more than tokens has to be known first: prompts are left or wait,
    /// tokens were guessed, a sequence ends by its length, all logits are wanted, or blocks could run out.
    ///
    /// The results of both steps are then wanted by [`Scheduler::commit`], the older one's first.
    pub fn schedule_ahead(&mut self) -> Option<Batch> {
        if !self.may_run_ahead() {
            return None;
        }
        let in_flight = std::mem::take(&mut self.in_flight);
        for (entry, seq) in in_flight.iter().zip(&mut self.running) {
            self.kv.assume(&mut seq.cache, entry.upto);
            seq.tokens.push(UNKNOWN);
            if seq.phase == Phase::Prefill {
                seq.enter(Phase::Decode);
            }
        }
        self.assumed = in_flight;
        self.stats.ahead += 1;
        Some(self.plan())
    }

    fn may_run_ahead(&self) -> bool {
        let alike = self.waiting.is_empty() && self.assumed.is_empty() && self.in_flight.len() == self.running.len();
        let each = self.in_flight.iter().zip(&self.running).all(|(entry, seq)| {
            let one = entry.seq == seq.id && entry.sample && entry.drafts.is_empty() && seq.drafts.is_empty();
            one && seq.ending.is_none() && seq.ready.is_empty() && !seq.wants_all_logits() && seq.remaining_after(1) > 0
        });
        alike
            && each
            && !self.running.is_empty()
            && self.kv.has_available(&vec![self.running.len(); self.kv.groups().len()])
    }

    /// The results of the older of two steps in flight: tokens take the places that were kept for them.
    pub(super) fn resolve(&mut self, results: &[StepResult]) -> Result<Vec<SeqUpdate>, CommitError> {
        self.match_results(&self.assumed, results)?;
        let mut updates = Vec::new();
        for (entry, result) in std::mem::take(&mut self.assumed).into_iter().zip(results) {
            let Some(at) = self.in_flight_at(&entry) else { continue };
            let seq = &mut self.running[at];
            let token = match &result.outcome {
                EntryOutcome::Token(token) => Some(*token),
                EntryOutcome::Run(run) => run.first().copied(),
                EntryOutcome::Ran | EntryOutcome::Failed(_) => None,
            };
            if let EntryOutcome::Failed(why) = &result.outcome {
                seq.ending.get_or_insert_with(|| why.clone());
            }
            let (Some(token), None) = (token, &seq.ending) else {
                // It ends with the younger step, and without a token of this one.
                seq.tokens.truncate(entry.upto);
                continue;
            };
            seq.tokens[entry.upto] = token;
            self.kv.advance(&mut seq.cache, &seq.tokens, entry.upto);
            seq.rows_delivered(entry.upto);
            seq.ending = seq.natural_end();
            updates.push(SeqUpdate::Token { seq: seq.id, token, position: entry.upto });
        }
        Ok(updates)
    }

    /// Forgets the places kept for tokens that will never be known.
    pub(super) fn forget_assumed(&mut self) {
        for entry in std::mem::take(&mut self.assumed) {
            if let Some(at) = self.in_flight_at(&entry) {
                self.running[at].tokens.truncate(entry.upto);
            }
        }
    }
}
