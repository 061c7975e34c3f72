//! Prompts as llama.cpp takes them: one or several, each a text, token ids, or texts and ids in turn.

use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured, refused, token_ids, wrong};
use crate::limits::MAX_CHOICES;
use crate::prompt::{PromptEncoding, PromptInput};
use serde_json::Value;
use yirage_session::TextProcessor;

/// The schema of it.
pub(super) const PROMPT: &str = r#"{"anyOf":[{"type":"string"},{"type":"array","minItems":1},
    {"type":"object","required":["prompt_string"]}]}"#;

const EXPECTED: &str = "a text, token ids, both in turn, or a list of such prompts";

/// A prompt in an object, which may have what is no text beside it.
const OBJECT: FieldTable =
    &[&[honoured("prompt_string", "{}"), refused("multimodal_data", "only text is understood", &["[]"])]];

/// The pieces of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MixedPrompt(Vec<PromptInput>);

impl MixedPrompt {
    /// The prompts of a field. A list with a number in it is one prompt; any other is a list of prompts.
    ///
    /// # Errors
    /// What is none; none; more than are taken.
    pub(super) fn list(name: &str, value: Value) -> Result<Vec<MixedPrompt>, ApiError> {
        match value {
            Value::Array(list) if list.is_empty() => Err(ApiError::field(name, format!("`{name}` is empty"))),
            Value::Array(list) if list.len() > MAX_CHOICES && !list.iter().any(Value::is_number) => {
                let what = format!("`{name}` has {} entries; {MAX_CHOICES} are taken", list.len());
                Err(ApiError::field(name, what))
            }
            Value::Array(list) if !list.iter().any(Value::is_number) => {
                list.into_iter().enumerate().map(|(at, one)| MixedPrompt::one(&format!("{name}[{at}]"), one)).collect()
            }
            one => Ok(vec![MixedPrompt::one(name, one)?]),
        }
    }

    fn one(name: &str, value: Value) -> Result<MixedPrompt, ApiError> {
        match value {
            Value::String(text) => Ok(MixedPrompt(vec![PromptInput::Text(text)])),
            Value::Array(list) if list.iter().all(Value::is_number) => {
                Ok(MixedPrompt(vec![PromptInput::Ids(token_ids(name, &list)?)]))
            }
            Value::Array(list) => {
                let piece = |(at, value): (usize, Value)| match value {
                    Value::String(text) => Ok(PromptInput::Text(text)),
                    id => Ok(PromptInput::Ids(token_ids(&format!("{name}[{at}]"), &[id])?)),
                };
                Ok(MixedPrompt(list.into_iter().enumerate().map(piece).collect::<Result<_, ApiError>>()?))
            }
            object @ Value::Object(_) => {
                let mut object = Fields::within(object, OBJECT, name)?;
                let (place, prompt) = (object.at("prompt_string"), object.take("prompt_string"));
                let prompt = object.need("prompt_string", prompt)?;
                object.finish()?;
                if prompt.is_object() {
                    return Err(wrong(&place, EXPECTED, &prompt));
                }
                MixedPrompt::one(&place, prompt)
            }
            other => Err(wrong(name, EXPECTED, &other)),
        }
    }

    /// Its ids. Only a text at its beginning gets the tokens that the model wants in front.
    ///
    /// # Errors
    /// A text for a model without a tokenizer.
    pub(super) fn ids(&self, texts: Option<&TextProcessor>) -> Result<Vec<u32>, ApiError> {
        let usual = PromptEncoding::default();
        let piece = |(at, piece): (usize, &PromptInput)| {
            piece.ids(texts, PromptEncoding { add_special: usual.add_special && at == 0, ..usual })
        };
        Ok(self.0.iter().enumerate().map(piece).collect::<Result<Vec<_>, _>>()?.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prompts_as_llama_cpp_takes_them() {
        let text = |text: &str| PromptInput::Text(text.to_owned());
        let ids = |ids: &[u32]| PromptInput::Ids(ids.to_vec());
        for (sent, wanted) in [
            (json!("a"), vec![vec![text("a")]]),
            (json!([1, 2]), vec![vec![ids(&[1, 2])]]),
            (json!([1, "a", 2]), vec![vec![ids(&[1]), text("a"), ids(&[2])]]),
            (json!(["a", 1]), vec![vec![text("a"), ids(&[1])]]),
            (json!(["a", "b"]), vec![vec![text("a")], vec![text("b")]]),
            (json!(["a", [1, 2], [3, "b"]]), vec![vec![text("a")], vec![ids(&[1, 2])], vec![ids(&[3]), text("b")]]),
            (json!({"prompt_string": "a", "multimodal_data": []}), vec![vec![text("a")]]),
            (json!([{"prompt_string": [1, "a"]}, "b"]), vec![vec![ids(&[1]), text("a")], vec![text("b")]]),
        ] {
            let read = MixedPrompt::list("prompt", sent.clone()).unwrap();
            assert_eq!(read, wanted.into_iter().map(MixedPrompt).collect::<Vec<_>>(), "{sent}");
        }
        for wrong in [
            json!([]),
            json!(1),
            json!([1.5]),
            json!([-1]),
            json!([null]),
            json!([["a", null]]),
            json!({"prompt_string": "a", "multimodal_data": ["aGk="]}),
            json!({"prompt": "a"}),
            json!({"prompt_string": {"prompt_string": "a"}}),
            json!(vec!["a"; MAX_CHOICES + 1]),
        ] {
            assert!(MixedPrompt::list("prompt", wrong.clone()).is_err(), "{wrong}");
        }
    }
}
