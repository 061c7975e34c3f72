//! What a caller asks for.

use crate::sampling::SamplingParams;
use crate::scheduler::LogitsWanted;

/// A request for tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Token ids of the prompt, at least one.
    pub prompt: Vec<u32>,
    /// New tokens at most; none is as many as fit.
    pub max_new_tokens: Option<u32>,
    /// Tokens that end the sequence; the one that did is reported as its last.
    pub stop_ids: Vec<u32>,
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// Whose logits are reported as [`super::Event::Logits`]; none reports none.
    pub logits: Option<LogitsWanted>,
}

impl Request {
    /// Greedy tokens after `prompt`.
    pub fn greedy(prompt: Vec<u32>, max_new_tokens: u32) -> Request {
        Request {
            prompt,
            max_new_tokens: Some(max_new_tokens),
            stop_ids: Vec::new(),
            sampling: SamplingParams::greedy(),
            logits: None,
        }
    }
}
