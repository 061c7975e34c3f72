//! Which tokens a sequence has had, for the penalties.

use std::collections::{BTreeMap, BTreeSet};

use super::params::SamplingParams;

/// The tokens of one sequence: those of the prompt, and those of the output with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    prompt: BTreeSet<u32>,
    output: BTreeMap<u32, u32>,
}

impl TokenCounts {
    /// The counts of a sequence that has only its prompt.
    pub fn new(prompt: &[u32]) -> Self {
        TokenCounts { prompt: prompt.iter().copied().collect(), output: BTreeMap::new() }
    }

    /// Counts a sampled token.
    pub fn push(&mut self, token: u32) {
        let count = self.output.entry(token).or_insert(0);
        *count = count.saturating_add(1);
    }

    /// Applies the penalties of `params` to `row`, each token's repetition penalty before the other two.
    pub(super) fn penalise(&self, params: &SamplingParams, row: &mut [f32]) {
        let repeat = |logit: f32| {
            if logit > 0.0 { logit / params.repetition_penalty } else { logit * params.repetition_penalty }
        };
        if params.repetition_penalty != 1.0 {
            for &token in self.prompt.iter().filter(|token| !self.output.contains_key(token)) {
                if let Some(logit) = row.get_mut(token as usize) {
                    *logit = repeat(*logit);
                }
            }
        }
        for (&token, &count) in &self.output {
            if let Some(logit) = row.get_mut(token as usize) {
                *logit = repeat(*logit) - params.frequency_penalty * count as f32 - params.presence_penalty;
            }
        }
    }
}
