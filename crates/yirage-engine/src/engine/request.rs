//! What a caller asks for.

use crate::embedded::EmbeddedSpan;
use crate::options::AdapterScale;
use crate::sampling::SamplingParams;
use crate::scheduler::LogitsWanted;

/// A request for tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Token ids of the prompt, at least one.
    pub prompt: Vec<u32>,
    /// Rows of embeddings in the place of tokens of the prompt, in order; those tokens' ids count for penalties alone. The
    /// engine has to be loaded with [`EngineOptions::embedded`](crate::EngineOptions::embedded).
    pub embedded: Vec<EmbeddedSpan>,
    /// New tokens at most; none is as many as fit.
    pub max_new_tokens: Option<u32>,
    /// New tokens at least: no stop id is sampled before so many others.
    pub min_new_tokens: u32,
    /// Tokens that end the sequence; the one that did is reported as its last.
    pub stop_ids: Vec<u32>,
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// The only tokens that are sampled; none allows all.
    pub allowed_tokens: Option<Vec<u32>>,
    /// Sequences of tokens that are never completed by a sampled token, also where they begin in the prompt.
    pub bad_words: Vec<Vec<u32>>,
    /// Whose logits are reported as [`super::Event::Logits`]; none reports none.
    pub logits: Option<LogitsWanted>,
    /// Whose hidden states are reported as [`super::Event::Hidden`]; none reports none. The engine has to be loaded with
    /// [`EngineOptions::hidden`](crate::EngineOptions::hidden).
    pub hidden: Option<LogitsWanted>,
    /// Report the log-probability of each token of the prompt but the first, and those of this many likeliest tokens at its
    /// place, as [`super::Event::PromptLogprobs`].
    pub prompt_logprobs: Option<u32>,
    /// How much of which adapters it gets, of those not named nothing; none is what the engine has by itself.
    pub adapters: Option<Vec<AdapterScale>>,
    /// Requests share cached beginnings only under equal salts; empty is the common one.
    pub cache_salt: Vec<u8>,
    /// Who is less comes first, and is preempted last.
    pub priority: i32,
    /// On whose account it is: keys of one priority take turns.
    pub key: u64,
}

impl Request {
    /// Greedy tokens after `prompt`.
    pub fn greedy(prompt: Vec<u32>, max_new_tokens: u32) -> Request {
        Request {
            prompt,
            embedded: Vec::new(),
            max_new_tokens: Some(max_new_tokens),
            min_new_tokens: 0,
            stop_ids: Vec::new(),
            sampling: SamplingParams::greedy(),
            allowed_tokens: None,
            bad_words: Vec::new(),
            logits: None,
            hidden: None,
            prompt_logprobs: None,
            adapters: None,
            cache_salt: Vec::new(),
            priority: 0,
            key: 0,
        }
    }
}
