//! Which tokens a sequence has had, for the penalties.

use std::collections::{BTreeMap, BTreeSet};

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

    /// The tokens with their uses in the output, for the penalties: (token, 0) for those of the prompt alone, which only
    /// a repetition penalty concerns.
    pub(super) fn history(&self, with_prompt: bool) -> impl Iterator<Item = (u32, u32)> {
        let unused = move |token: &&u32| with_prompt && !self.output.contains_key(token);
        let prompt = self.prompt.iter().filter(unused).map(|&token| (token, 0));
        prompt.chain(self.output.iter().map(|(&token, &uses)| (token, uses)))
    }
}
