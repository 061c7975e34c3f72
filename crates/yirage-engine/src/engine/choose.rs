//! Tokens from the logits of a step.

use super::core::Engine;
use crate::sampling::{Pick, SampleError, Sampling, TokenCounts};
use crate::scheduler::{Batch, BatchEntry};

impl Engine {
    /// Whether the entry's sequence gets a token: it is wanted, and the engine still has the sequence.
    pub(super) fn samples(&self, entry: &BatchEntry) -> bool {
        entry.sample && self.requests.contains_key(&entry.seq)
    }

    /// Begins to choose tokens from the logits of the step submitted last: one for each row of each entry that
    /// [`Engine::samples`], of its last certain token and of its drafts, each with the history that the drafts before it
    /// make. None where there is no such row.
    pub(super) fn sample(&mut self, batch: &Batch) -> Result<Option<Sampling>, SampleError> {
        let histories = self.histories(batch);
        let mut histories = histories.iter();
        let mut picks = Vec::with_capacity(batch.rows());
        let mut rows = 0;
        for entry in &batch.entries {
            rows += entry.rows.len();
            let Some(seq) = self.requests.get(&entry.seq).filter(|_| entry.sample) else { continue };
            let (params, drafts) = (&seq.sampling, entry.drafts as usize);
            for at in 0..=drafts {
                let with_drafts = if at > 0 && params.has_penalties() { histories.next() } else { None };
                let counts = with_drafts.unwrap_or(&seq.counts);
                let position = entry.start + (entry.certain().len() + at) as u32;
                picks.push(Pick { row: rows - 1 - drafts + at, params, counts, allowed: None, position });
            }
        }
        if picks.is_empty() {
            return Ok(None);
        }
        self.sampler.submit(self.runner.all_logits()?, self.facts.vocabulary as usize, &picks).map(Some)
    }

    /// For entries whose sampling looks at the history: that of each draft's row, the draft included.
    fn histories(&self, batch: &Batch) -> Vec<TokenCounts> {
        let mut histories = Vec::new();
        for entry in &batch.entries {
            let seq = self.requests.get(&entry.seq).filter(|seq| entry.sample && seq.sampling.has_penalties());
            let Some(mut counts) = seq.map(|seq| seq.counts.clone()) else { continue };
            for &draft in entry.drafted() {
                counts.push(draft);
                histories.push(counts.clone());
            }
        }
        histories
    }
}
