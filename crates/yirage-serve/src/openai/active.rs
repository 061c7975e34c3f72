//! Answers that have begun.

use crate::generate::{Conversing, Turns};
use crate::prompt::PromptInput;
use serde_json::Value;
use yirage_session::TextProcessor;

/// A conversation whose answers have begun.
pub(super) struct ActiveChat {
    pub(super) conversing: Conversing,
    pub(super) id: String,
    pub(super) created: u64,
    /// Whether its calls are for a client that sent `functions`.
    pub(super) functions: bool,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) logprobs: bool,
    pub(super) token_ids: bool,
    pub(super) ignored: Vec<String>,
}

/// Texts whose continuations have begun.
pub(super) struct ActiveCompletions {
    pub(super) turns: Turns,
    /// The prompts, by the order of their answers.
    pub(super) prompts: Vec<EncodedPrompt>,
    pub(super) n: usize,
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) logprobs: bool,
    pub(super) echo: bool,
    pub(super) token_ids: bool,
    pub(super) ignored: Vec<String>,
}

/// A prompt, as it was sent and as tokens.
pub(super) struct EncodedPrompt {
    pub(super) ids: Vec<u32>,
    /// Its text: what was sent, or what the tokens that were sent stand for.
    pub(super) text: String,
    /// Tokens in front of that text which are none of it.
    pub(super) hidden: usize,
}

impl EncodedPrompt {
    /// A prompt that became these tokens.
    pub(super) fn new(sent: PromptInput, ids: Vec<u32>, texts: Option<&TextProcessor>) -> EncodedPrompt {
        let prefix = texts.map_or(&[][..], |texts| texts.tokenizer.prefix());
        let hidden = if ids.starts_with(prefix) { prefix.len() } else { 0 };
        let text = match (sent, texts) {
            (PromptInput::Text(text), _) => text,
            (PromptInput::Ids(_), Some(texts)) => texts.tokenizer.decode(ids.get(hidden..).unwrap_or_default(), false),
            (PromptInput::Ids(_), None) => String::new(),
        };
        EncodedPrompt { ids, text, hidden }
    }
}

/// The type of whatever is in an object, for tests and documents alike.
pub(super) const WHOLE: &str = "chat.completion";
/// The type of a part of it.
pub(super) const PART: &str = "chat.completion.chunk";

/// What a client is told of the engine that answered.
pub(super) fn fingerprint() -> Value {
    Value::from(concat!("yirage-", env!("CARGO_PKG_VERSION")))
}
