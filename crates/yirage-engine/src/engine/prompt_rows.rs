//! Log-probabilities of a prompt's tokens, from the rows of logits that steps compute of it.
//!
//! The sampler tells the log-probability of the token it takes, of the raw row. So it is made to take the prompt's.

use super::core::Engine;
use super::event::Event;
use crate::sampling::{CheckedParams, PositionLogprobs, SampleError, SamplerOutput, TokenLogprob};
use crate::scheduler::{BatchEntry, SeqId};

impl Engine {
    /// The rows of the entry, counted from its first, whose next token is one of a prompt whose log-probabilities are
    /// wanted; with the place of that token in the prompt and its id.
    fn prompt_rows(&self, entry: &BatchEntry) -> impl Iterator<Item = (usize, usize, u32)> {
        let wanted = self.requests.get(&entry.seq).and_then(|of| of.wanted.prompt.as_ref());
        let next = move |(row, at): (usize, &u32)| {
            let place = (entry.start + at) as usize + 1;
            wanted.and_then(|(_, prompt)| prompt.get(place)).map(|&token| (row, place, token))
        };
        entry.rows.iter().enumerate().filter_map(next)
    }

    /// For each of these rows: whose and which it is, and the parameters under which its token is taken.
    pub(super) fn prompt_params(&self, entry: &BatchEntry) -> impl Iterator<Item = (SeqId, usize, CheckedParams)> {
        let top = self.requests.get(&entry.seq).and_then(|of| of.wanted.prompt.as_ref()).map(|(top, _)| *top);
        let vocabulary = self.facts.vocabulary as usize;
        let params = move |token| top.map(|top| CheckedParams::taking(token, top, vocabulary));
        let seq = entry.seq;
        self.prompt_rows(entry).filter_map(move |(row, _, token)| Some((seq, row, params(token)?)))
    }

    /// Reports what the sampler gave of these rows, which are the next of `sampled`.
    ///
    /// # Errors
    /// What is wrong with the first row that has no log-probabilities.
    pub(super) fn report_prompt(
        &self,
        entry: &BatchEntry,
        sampled: &mut impl Iterator<Item = Result<SamplerOutput, SampleError>>,
        events: &mut Vec<Event>,
    ) -> Result<(), SampleError> {
        let rows: Vec<_> = self.prompt_rows(entry).zip(sampled).collect();
        for ((_, position, token), sampled) in rows {
            events.extend(prompt_event(entry.seq, position, token, sampled?));
        }
        Ok(())
    }
}

/// The event of one token of a prompt. Only a token whose own logit is -infinity is not the one that was taken.
fn prompt_event(seq: SeqId, position: usize, token: u32, sampled: SamplerOutput) -> Option<Event> {
    let PositionLogprobs { chosen, top } = sampled.logprobs?;
    let chosen = if chosen.token == token { chosen } else { TokenLogprob { token, logprob: f32::NEG_INFINITY } };
    Some(Event::PromptLogprobs { seq, position, logprobs: PositionLogprobs { chosen, top } })
}
