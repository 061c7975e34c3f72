//! Prompts without a conversation: text or token ids, one or several.

use crate::error::ApiError;
use crate::fields::{token_ids, wrong};
use serde_json::Value;
use yirage_model::tokenizer::EncodeOptions;
use yirage_session::TextProcessor;

/// A prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PromptInput {
    /// Text.
    Text(String),
    /// Token ids, used as they are.
    Ids(Vec<u32>),
}

/// The prompts of a field: a string, strings, ids, or lists of ids.
///
/// # Errors
/// Anything else; none; more than `most`.
pub(crate) fn prompts(name: &str, value: Value, most: usize) -> Result<Vec<PromptInput>, ApiError> {
    const EXPECTED: &str = "a string, strings, token ids, or lists of token ids";
    let list = match value {
        Value::String(text) => return Ok(vec![PromptInput::Text(text)]),
        Value::Array(list) => list,
        other => return Err(wrong(name, EXPECTED, &other)),
    };
    if list.is_empty() {
        return Err(ApiError::field(name, format!("`{name}` is empty")));
    }
    if list.iter().all(Value::is_number) {
        return Ok(vec![PromptInput::Ids(token_ids(name, &list)?)]);
    }
    if list.len() > most {
        return Err(ApiError::field(name, format!("`{name}` has {} entries; {most} are taken", list.len())));
    }
    let one = |(at, value): (usize, Value)| match value {
        Value::String(text) => Ok(PromptInput::Text(text)),
        Value::Array(ids) => Ok(PromptInput::Ids(token_ids(&format!("{name}[{at}]"), &ids)?)),
        other => Err(wrong(&format!("{name}[{at}]"), EXPECTED, &other)),
    };
    list.into_iter().enumerate().map(one).collect()
}

/// How a text becomes tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptEncoding {
    /// Whether the tokens that the model wants in front are added.
    pub(crate) add_special: bool,
    /// Whether the names of special tokens in it are those tokens.
    pub(crate) parse_special: bool,
}

/// As llama.cpp and vLLM encode prompts: a text that somebody rendered has its special tokens in it.
impl Default for PromptEncoding {
    fn default() -> PromptEncoding {
        PromptEncoding { add_special: true, parse_special: true }
    }
}

impl PromptInput {
    /// Its ids. Those that were sent are used as they are.
    ///
    /// # Errors
    /// A text for a model without a tokenizer.
    pub(crate) fn ids(&self, texts: Option<&TextProcessor>, encoding: PromptEncoding) -> Result<Vec<u32>, ApiError> {
        match self {
            PromptInput::Ids(ids) => Ok(ids.clone()),
            PromptInput::Text(text) => {
                let missing = || ApiError::invalid("the model has no tokenizer: send token ids as the prompt");
                let texts = texts.ok_or_else(missing)?;
                if encoding.add_special {
                    return Ok(texts.encode_raw(text, Some(encoding.parse_special))?);
                }
                let options = EncodeOptions { add_special: false, parse_special: encoding.parse_special };
                texts.tokenizer.encode(text, options).map_err(|e| ApiError::field("prompt", e.to_string()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prompts_of_every_kind() {
        let of = |value| prompts("prompt", value, 3);
        assert_eq!(of(json!("a")).unwrap(), [PromptInput::Text("a".into())]);
        assert_eq!(of(json!([1, 2, 3, 4])).unwrap(), [PromptInput::Ids(vec![1, 2, 3, 4])]);
        assert_eq!(of(json!(["a", [1]])).unwrap(), [PromptInput::Text("a".into()), PromptInput::Ids(vec![1])]);
        for wrong in [json!(1), json!([]), json!([-1]), json!([[1], 2]), json!(["a", "b", "c", "d"]), json!([1, 1.5])] {
            assert!(of(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
