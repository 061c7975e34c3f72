//! One request as the simulation knows it, with the output it must have.

use super::super::{FinishReason, LogitsWanted, NewSequence};
use super::mix;
use std::cmp::Ordering;

pub(super) const VOCABULARY: u64 = 60;

pub(super) struct SchedSimRequest {
    pub(super) request: NewSequence,
    /// Prompt and the tokens reported so far.
    pub(super) tokens: Vec<u32>,
    /// Hash of the salt and the tokens up to each position.
    pub(super) history: Vec<u64>,
    /// What the request gives when it runs alone.
    solo: (Vec<u32>, FinishReason),
    /// Length at which it ends at the latest.
    pub(super) final_len: usize,
    /// Positions whose logits were delivered (when all are wanted).
    pub(super) rows_seen: usize,
    /// Step by which it must be over.
    pub(super) deadline: u64,
}

impl SchedSimRequest {
    pub(super) fn new(request: NewSequence, most: usize) -> Self {
        let prompt = request.prompt.len();
        let final_len = request.max_new_tokens.map_or(most, |new| prompt + new as usize);
        let history = histories(&request.cache_salt, &request.prompt);
        let solo = run_alone(&request, &history, final_len);
        SchedSimRequest {
            tokens: request.prompt.clone(),
            request,
            history,
            solo,
            final_len,
            rows_seen: 0,
            deadline: u64::MAX,
        }
    }

    pub(super) fn push(&mut self, token: u32) {
        let last = self.history[self.history.len() - 1];
        self.history.push(extend(last, token));
        self.tokens.push(token);
    }

    /// The token the model samples after `position`.
    pub(super) fn sample(&self, position: usize) -> u32 {
        next_token(self.history[position])
    }

    /// The history at `position` when `drafts` follow the tokens.
    pub(super) fn history_with(&self, drafts: &[u32], position: usize) -> u64 {
        let known = position.min(self.history.len() - 1);
        drafts[..position - known].iter().fold(self.history[known], |hash, &draft| extend(hash, draft))
    }

    /// The next `count` tokens that the model will sample.
    pub(super) fn future(&self, count: usize) -> Vec<u32> {
        let mut hash = self.history[self.history.len() - 1];
        let mut next = || {
            let token = next_token(hash);
            hash = extend(hash, token);
            token
        };
        (0..count).map(|_| next()).collect()
    }

    /// What verifying `drafts` gives: tokens up to the first that differs from its draft.
    pub(super) fn verify(&self, drafts: &[u32]) -> Vec<u32> {
        let of = |at: usize| next_token(self.history_with(drafts, self.history.len() - 1 + at));
        let accepted = drafts.iter().enumerate().take_while(|&(at, &draft)| of(at) == draft).count();
        (0..=accepted).map(of).collect()
    }

    /// Steps by which this job's own end may come later because `other`, of so many tokens, arrives behind it. Who is more
    /// urgent costs its own tokens, and `lost` ones that somebody else has to compute again.
    pub(super) fn delay(&self, other: &SchedSimRequest, lost: usize) -> usize {
        match other.request.priority.cmp(&self.request.priority) {
            Ordering::Less => other.final_len + lost,
            Ordering::Equal if other.request.key != self.request.key => other.final_len,
            Ordering::Equal | Ordering::Greater => 0,
        }
    }

    /// Whether the logits of each position are wanted.
    pub(super) fn delivers_all(&self) -> bool {
        self.request.logits == LogitsWanted::All
    }

    /// Compares the end with the solo run: equal for a natural end, a beginning of it otherwise.
    pub(super) fn check_end(&self, reason: &FinishReason) -> Result<(), String> {
        let output = &self.tokens[self.request.prompt.len()..];
        let natural = matches!(reason, FinishReason::StopId(_) | FinishReason::Length);
        if natural && (output, reason) != (&self.solo.0[..], &self.solo.1) {
            return Err(format!("ended with {reason:?} and {output:?}, alone it gives {:?}", self.solo));
        }
        if !natural && !self.solo.0.starts_with(output) {
            return Err(format!("{output:?} is no beginning of {:?}", self.solo.0));
        }
        let computed = self.tokens.len() - usize::from(!output.is_empty());
        if natural && self.request.logits == LogitsWanted::All && self.rows_seen != computed {
            return Err(format!("{} rows delivered of {computed}", self.rows_seen));
        }
        Ok(())
    }
}

fn histories(salt: &[u8], tokens: &[u32]) -> Vec<u64> {
    let mut hash = salt.iter().fold(1, |hash, &byte| mix(hash ^ (u64::from(byte) + 7)));
    tokens
        .iter()
        .map(|&token| {
            hash = extend(hash, token);
            hash
        })
        .collect()
}

/// The hash of a history with one more token; never 0.
fn extend(hash: u64, token: u32) -> u64 {
    mix(hash.wrapping_mul(3) ^ u64::from(token)) | 1
}

fn next_token(history: u64) -> u32 {
    (mix(history) % VOCABULARY) as u32
}

fn run_alone(request: &NewSequence, history: &[u64], final_len: usize) -> (Vec<u32>, FinishReason) {
    let mut hash = history[history.len() - 1];
    let mut output = Vec::new();
    while request.prompt.len() + output.len() < final_len {
        let token = next_token(hash);
        output.push(token);
        hash = extend(hash, token);
        if request.stop_ids.contains(&token) {
            return (output, FinishReason::StopId(token));
        }
    }
    (output, FinishReason::Length)
}
