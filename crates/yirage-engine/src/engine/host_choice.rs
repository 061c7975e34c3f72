//! Tokens that the host chooses, by a request's chain of samplers, where the device would have chosen the others.

use super::core::Engine;
use crate::sampling::{ChainChoice, CheckedParams, Logits, SampleError, SamplerInput, SamplerOutput, TokenCounts};
use crate::scheduler::{BatchEntry, SeqId};

impl Engine {
    /// Whether the host chooses the sequence's tokens.
    pub(super) fn chooses_on_host(&self, seq: SeqId) -> bool {
        self.requests.get(&seq).is_some_and(|of| of.chain.is_some())
    }

    /// Chooses a token for each row of the entry's last certain token and its drafts, up to the first that is not the draft
    /// at its place. `first_row` is the entry's first row of the step, whose logits the host has.
    pub(super) fn choose_on_host(
        &mut self,
        entry: &BatchEntry,
        first_row: usize,
    ) -> Vec<Result<SamplerOutput, SampleError>> {
        let first = first_row + entry.rows.len() - entry.drafts as usize - 1;
        let mut chosen = Vec::new();
        for at in 0..=entry.drafts as usize {
            let output = self.choose_row(entry, at, first + at);
            let goes_on = output.as_ref().is_ok_and(|o| entry.drafted().get(at) == Some(&o.token));
            chosen.push(output);
            if !goes_on {
                break;
            }
        }
        chosen
    }

    /// The token behind `at` drafts, which were all chosen. The chain has it from then on.
    fn choose_row(&mut self, entry: &BatchEntry, at: usize, row: usize) -> Result<SamplerOutput, SampleError> {
        let logits = self.runner.logits(row).map_err(|e| SampleError::Logits { why: e.to_string() })?;
        let vocabulary = logits.len();
        let lost = || SampleError::Logits { why: "the engine lost the sequence".into() };
        let request = self.requests.get_mut(&entry.seq).ok_or_else(lost)?;
        let params = request.sampling.get();
        let mut counts = None;
        if at > 0 && request.sampling.has_penalties() {
            let counts = counts.insert(request.counts.clone());
            entry.drafted()[..at].iter().for_each(|&draft| counts.push(draft));
        }
        let counts = counts.as_ref().unwrap_or(&request.counts);
        let position = entry.start + entry.certain().len() as u32 + at as u32;
        let chain = request.chain.as_mut().ok_or_else(lost)?;
        let choice = chain.choose(logits, (params.for_chain(), counts, request.restraint.mask(at)), position)?;
        chain.push(params.for_chain(), choice);
        request.host_sampled += 1;
        let ChainChoice { token, .. } = choice;
        let Some(top) = params.logprobs else { return Ok(SamplerOutput { token, logprobs: None }) };
        // The device tells log-probabilities of the token that it takes: it is made to take this one.
        let params = CheckedParams::taking(token, top, vocabulary);
        let (row, counts) = (logits.to_vec(), TokenCounts::default());
        let pick = SamplerInput { row: 0, params: &params, counts: &counts, allowed: None, position };
        let mut told = self.sampler.sample_all(Logits::Host(&row), vocabulary, &[pick])?;
        let told = told.pop().unwrap_or_else(|| Err(lost()))?;
        Ok(SamplerOutput { token, logprobs: told.logprobs })
    }
}
