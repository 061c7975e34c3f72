//! Tokens one after the other: a forward pass, a choice for each row, and again.

use super::core::Forward;
use super::row::ForwardRow;
use super::step::ForwardStep;
use crate::error::EngineError;
use crate::forward_error::ForwardError;
use crate::sampling::{CheckedParams, Logits, Sampler, SamplerInput, SamplingParams, TokenCounts};
use crate::scheduler::LogitsWanted;

/// How tokens are generated.
#[derive(Clone, PartialEq, Debug)]
pub struct Generate {
    /// New tokens of a row at most.
    pub max_new_tokens: u32,
    /// How each is chosen. Rows do not depend on each other: of equal prompts they are equal.
    pub sampling: SamplingParams,
    /// Tokens that end a row; the one that did is its last.
    pub ends: Vec<u32>,
}

/// A row that is being generated.
struct GenerationRow {
    counts: TokenCounts,
    /// Tokens that the next call computes, and where they begin.
    next: Vec<u32>,
    start: u32,
    generated: Vec<u32>,
}

impl GenerationRow {
    fn new(prompt: &[u32]) -> GenerationRow {
        GenerationRow { counts: TokenCounts::new(prompt), next: prompt.to_vec(), start: 0, generated: Vec::new() }
    }

    /// The position that the token behind those will have.
    fn position(&self) -> u32 {
        self.start + self.next.len() as u32
    }

    fn push(&mut self, token: u32) {
        self.start = self.position();
        self.next = vec![token];
        self.counts.push(token);
        self.generated.push(token);
    }

    fn has_ended(&self, how: &Generate) -> bool {
        let ended = self.generated.last().is_some_and(|last| how.ends.contains(last));
        ended || self.generated.len() >= how.max_new_tokens as usize
    }
}

impl Forward {
    /// Continues each prompt, which takes the place of what is cached of the first sequences. `each` is given what every
    /// call gave and says whether to go on.
    ///
    /// # Errors
    /// As [`Forward::forward`]; parameters out of range.
    pub fn generate(
        &mut self,
        prompts: &[Vec<u32>],
        how: &Generate,
        each: &mut dyn FnMut(&ForwardStep) -> bool,
    ) -> Result<Vec<Vec<u32>>, EngineError> {
        let params = how.sampling.clone().checked(self.vocabulary() as usize)?;
        let mut rows: Vec<GenerationRow> = prompts.iter().map(|prompt| GenerationRow::new(prompt)).collect();
        if how.max_new_tokens == 0 {
            return Ok(rows.into_iter().map(|row| row.generated).collect());
        }
        loop {
            let open: Vec<usize> = (0..rows.len()).filter(|&at| !rows[at].has_ended(how)).collect();
            if open.is_empty() && !rows.is_empty() {
                break;
            }
            let row = |&at: &usize| ForwardRow { sequence: at, start: rows[at].start, tokens: &rows[at].next };
            let given: Vec<ForwardRow<'_>> = open.iter().map(row).collect();
            let step = self.forward(&given, LogitsWanted::Last)?;
            let rows_of = open.iter().map(|&at| (&rows[at].counts, rows[at].position())).collect::<Vec<_>>();
            let tokens = self.choose(&step, &params, &rows_of)?;
            open.iter().zip(tokens).for_each(|(&at, token)| rows[at].push(token));
            if !each(&step) {
                break;
            }
        }
        Ok(rows.into_iter().map(|row| row.generated).collect())
    }

    /// A token for each row of logits: `rows` are what it had so far, and the position the token will have.
    ///
    /// # Errors
    /// What the device says; logits that are no numbers.
    pub fn choose(
        &mut self,
        step: &ForwardStep,
        params: &CheckedParams,
        rows: &[(&TokenCounts, u32)],
    ) -> Result<Vec<u32>, EngineError> {
        if params.is_on_host() {
            return Err(ForwardError::HostSamplers(params.get().chain.asked()).into());
        }
        let logits: Vec<f32> = step.logits.bytes().as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b)).collect();
        let (vocabulary, device) = (self.vocabulary() as usize, &self.device);
        let known = self.sampler.take().filter(|(seqs, _)| *seqs >= rows.len());
        let known = known.unwrap_or_else(|| {
            let seqs = rows.len().next_power_of_two();
            (seqs, Sampler::new(device.clone(), seqs as u32))
        });
        let (_, sampler) = self.sampler.insert(known);
        let mut picks = Vec::with_capacity(rows.len());
        for (row, &(counts, position)) in rows.iter().enumerate() {
            picks.push(SamplerInput { row, params, counts, allowed: None, position });
        }
        let sampled = sampler.sample_all(Logits::Host(&logits), vocabulary, &picks)?;
        sampled.into_iter().map(|one| Ok(one?.token)).collect()
    }
}
