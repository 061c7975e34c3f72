//! Tokens from the logits of a step.

use super::core::Engine;
use crate::sampling::{SampleError, SamplerInput, SamplingInFlight, TokenCounts};
use crate::scheduler::{Batch, BatchEntry};

impl Engine {
    /// Whether the entry's sequence gets a token: it is wanted, and the engine still has the sequence.
    pub(super) fn samples(&self, entry: &BatchEntry) -> bool {
        entry.sample && self.requests.contains_key(&entry.seq)
    }

    /// Begins to choose tokens from the logits of the step submitted last: one for each row of each entry that
    /// [`Engine::samples`] and the host does not choose for, of its last certain token and of its drafts, each with the history that the drafts before it
    /// make; and before them the tokens of its prompt whose log-probabilities are wanted. None where there is no such row.
    pub(super) fn sample(&mut self, batch: &Batch) -> Result<Option<SamplingInFlight>, SampleError> {
        self.restrain(batch);
        let histories = self.histories(batch);
        let mut histories = histories.iter();
        let prompts: Vec<_> = batch.entries.iter().flat_map(|entry| self.prompt_params(entry)).collect();
        let mut prompts = prompts.iter().peekable();
        let mut picks = Vec::with_capacity(batch.rows());
        let mut rows = 0;
        for entry in &batch.entries {
            let first = rows;
            rows += entry.rows.len();
            let Some(seq) = self.requests.get(&entry.seq) else { continue };
            let counts = &seq.counts;
            while let Some((_, row, params)) = prompts.next_if(|(seq, ..)| *seq == entry.seq) {
                picks.push(SamplerInput { row: first + row, params, counts, allowed: None, position: entry.start });
            }
            if !entry.sample || seq.chain.is_some() {
                continue;
            }
            let (params, drafts) = (&seq.sampling, entry.drafts as usize);
            for at in 0..=drafts {
                let with_drafts = if at > 0 && params.has_penalties() { histories.next() } else { None };
                let counts = with_drafts.unwrap_or(counts);
                let (allowed, position) = (seq.restraint.mask(at), next_position(entry) + at as u32);
                picks.push(SamplerInput { row: rows - 1 - drafts + at, params, counts, allowed, position });
            }
        }
        if picks.is_empty() {
            return Ok(None);
        }
        self.sampler.submit(self.runner.all_logits()?, self.facts.vocabulary as usize, &picks).map(Some)
    }

    /// Whether what restricts the entry's sequence allowed no token.
    pub(super) fn allows_none(&self, entry: &BatchEntry) -> bool {
        entry.sample && self.requests.get(&entry.seq).is_some_and(|seq| seq.restraint.allows_none())
    }

    /// Finds the tokens that restricted sequences may get, while the device computes the step.
    fn restrain(&mut self, batch: &Batch) {
        for entry in batch.entries.iter().filter(|entry| entry.sample) {
            if let Some(seq) = self.requests.get_mut(&entry.seq) {
                seq.restraint.look(next_position(entry), entry.drafted());
            }
        }
    }

    /// For entries whose sampling looks at the history: that of each draft's row, the draft included.
    fn histories(&self, batch: &Batch) -> Vec<TokenCounts> {
        let mut histories = Vec::new();
        for entry in &batch.entries {
            let seq = self
                .requests
                .get(&entry.seq)
                .filter(|seq| entry.sample && seq.chain.is_none() && seq.sampling.has_penalties());
            let Some(mut counts) = seq.map(|seq| seq.counts.clone()) else { continue };
            for &draft in entry.drafted() {
                counts.push(draft);
                histories.push(counts.clone());
            }
        }
        histories
    }
}

/// The position of the token that is sampled behind the entry's certain ones.
fn next_position(entry: &BatchEntry) -> u32 {
    entry.start + entry.certain().len() as u32
}
