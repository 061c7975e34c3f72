//! Log-probabilities in the two forms of OpenAI's interface.

use crate::generate::AnswerToken;
use serde_json::{Value, json};
use yirage_engine::sampling::{PositionLogprobs, TokenLogprob};
use yirage_model::tokenizer::Tokenizer;

/// Below every logarithm that matters: JSON has no infinity.
const LEAST: f32 = -9999.0;

/// What a token is called: its text, which is a part of a character at times.
pub(super) fn name(tokenizer: &Tokenizer, id: u32) -> String {
    tokenizer.decode_continuation(&[id], false)
}

fn number(logprob: f32) -> f32 {
    logprob.max(LEAST)
}

fn entry(tokenizer: &Tokenizer, of: &TokenLogprob) -> Value {
    let bytes = tokenizer.token_bytes(of.token).unwrap_or_default();
    json!({"token": name(tokenizer, of.token), "logprob": number(of.logprob), "bytes": bytes})
}

/// The form of conversations and responses, one of `{token, logprob, bytes, top_logprobs}` for each token.
pub(crate) fn entries<'a>(tokenizer: &Tokenizer, tokens: impl IntoIterator<Item = &'a AnswerToken>) -> Vec<Value> {
    let one = |logprobs: &PositionLogprobs| {
        let mut entry_of = entry(tokenizer, &logprobs.chosen);
        entry_of["top_logprobs"] = logprobs.top.iter().map(|top| entry(tokenizer, top)).collect();
        entry_of
    };
    tokens.into_iter().filter_map(|token| token.logprobs.as_ref()).map(one).collect()
}

/// The form of llama.cpp: the same with the ids of the tokens.
pub(crate) fn entries_with_ids<'a>(
    tokenizer: &Tokenizer,
    tokens: impl IntoIterator<Item = &'a AnswerToken>,
) -> Vec<Value> {
    let with_id = |of: &TokenLogprob| {
        let mut entry_of = entry(tokenizer, of);
        entry_of["id"] = of.token.into();
        entry_of
    };
    let one = |logprobs: &PositionLogprobs| {
        let mut entry_of = with_id(&logprobs.chosen);
        entry_of["top_logprobs"] = logprobs.top.iter().map(with_id).collect();
        entry_of
    };
    tokens.into_iter().filter_map(|token| token.logprobs.as_ref()).map(one).collect()
}

/// The most probable tokens by their names.
fn top(tokenizer: &Tokenizer, of: &PositionLogprobs) -> Value {
    let one = |top: &TokenLogprob| (name(tokenizer, top.token), Value::from(number(top.logprob)));
    Value::Object(of.top.iter().map(one).collect())
}

/// The form of completions: parallel lists. Offsets count characters from the text's beginning.
#[derive(Default)]
pub(super) struct LogprobLists {
    tokens: Vec<String>,
    logprobs: Vec<Value>,
    top: Vec<Value>,
    offsets: Vec<usize>,
    /// Characters so far.
    characters: usize,
    /// Tokens of the prompt that are still to come and are none of its text.
    hidden: usize,
    /// Whether a prompt's next token begins a text: at its front, and behind a control token.
    fresh: bool,
}

impl LogprobLists {
    /// Those of an answer behind its prompt, whose first `hidden` tokens are none of its text.
    pub(super) fn of_prompt(hidden: usize) -> LogprobLists {
        LogprobLists { hidden, fresh: true, ..LogprobLists::default() }
    }

    /// Adds a token of which nothing is known: the first one of a prompt.
    pub(super) fn first(&mut self, tokenizer: &Tokenizer, id: u32) {
        self.push_of_prompt(tokenizer, id, Value::Null, Value::Null);
    }

    /// Adds a further token of a prompt.
    pub(super) fn add_of_prompt(&mut self, tokenizer: &Tokenizer, of: &PositionLogprobs) {
        self.push_of_prompt(tokenizer, of.chosen.token, number(of.chosen.logprob).into(), top(tokenizer, of));
    }

    /// Adds a token of an answer.
    pub(super) fn add(&mut self, tokenizer: &Tokenizer, of: &PositionLogprobs) {
        // Control tokens of an answer have a name and are no text.
        let text = tokenizer.decode_continuation(&[of.chosen.token], true);
        self.push(tokenizer, of.chosen.token, number(of.chosen.logprob).into(), top(tokenizer, of), &text);
    }

    fn push_of_prompt(&mut self, tokenizer: &Tokenizer, id: u32, logprob: Value, top: Value) {
        let text = match (self.hidden > 0, self.fresh) {
            (true, _) => String::new(),
            (false, true) => tokenizer.decode(&[id], false),
            (false, false) => tokenizer.decode_continuation(&[id], false),
        };
        self.fresh = self.hidden > 0 || tokenizer.is_special(id);
        self.hidden = self.hidden.saturating_sub(1);
        self.push(tokenizer, id, logprob, top, &text);
    }

    fn push(&mut self, tokenizer: &Tokenizer, id: u32, logprob: Value, top: Value, text: &str) {
        self.offsets.push(self.characters);
        self.characters += text.chars().count();
        self.tokens.push(name(tokenizer, id));
        self.logprobs.push(logprob);
        self.top.push(top);
    }

    /// Takes what was added since the last call.
    pub(super) fn take(&mut self) -> Value {
        let tokens = std::mem::take(&mut self.tokens);
        let (logprobs, top) = (std::mem::take(&mut self.logprobs), std::mem::take(&mut self.top));
        let offsets = std::mem::take(&mut self.offsets);
        json!({"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": top, "text_offset": offsets})
    }
}
