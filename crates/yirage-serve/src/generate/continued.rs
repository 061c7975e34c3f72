//! A last message of the assistant that the answer goes on from, for every protocol alike.
//!
//! A template ends each message with marks of its own, which nobody but the template knows. So the message is rendered with
//! a word behind its text that stands nowhere else, and the prompt is what stands in front of that word. Where the word is
//! not found the template does not show the text, and nothing could go on from it.

use crate::error::ApiError;
use serde_json::Value;

/// Whether the answer goes on from the last message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Continues {
    /// Where it is the assistant's.
    #[default]
    AsItIs,
    /// It has to.
    Always,
    /// A new message is begun.
    Never,
}

impl Continues {
    /// What llama.cpp's, vLLM's and DeepSeek's fields say together: `continue_final_message`, a template's own way to begin
    /// an answer, and `prefix` in the last message, which is taken out.
    ///
    /// # Errors
    /// Fields that contradict each other; `prefix` in another message, or with another value than a switch.
    pub(crate) fn read(
        asked: Option<bool>,
        generation_prompt: Option<bool>,
        messages: &mut [Value],
    ) -> Result<Continues, ApiError> {
        let field = "continue_final_message";
        let last = messages.last_mut().and_then(Value::as_object_mut);
        let prefix = last.and_then(|last| {
            last.remove("prefix").map(|prefix| (prefix, last.get("role").is_some_and(|role| role == "assistant")))
        });
        let prefix = match prefix {
            None | Some((Value::Null | Value::Bool(false), _)) => false,
            Some((Value::Bool(true), true)) => true,
            Some(_) => {
                let what = "`messages.prefix`: expected a switch in the last message, which has to be the assistant's";
                return Err(ApiError::field("messages.prefix", what));
            }
        };
        match (asked, generation_prompt) {
            (Some(true), Some(true)) => {
                let what = "`continue_final_message` and `add_generation_prompt` exclude each other; send one of them";
                Err(ApiError::field(field, what))
            }
            (Some(false), _) if prefix => {
                Err(ApiError::field(field, "`continue_final_message` is false, and `prefix` asks for it"))
            }
            (Some(true), _) => Ok(Continues::Always),
            _ if prefix => Ok(Continues::Always),
            // Who says how the template is to end has it end so.
            (Some(false), _) | (None, Some(_)) => Ok(Continues::Never),
            (None, None) => Ok(Continues::AsItIs),
        }
    }
}

/// How a conversation is given to its template.
pub(super) enum ConversationEnding {
    /// As it is.
    Whole,
    /// Without its last message, which says nothing yet.
    Without,
    /// With the word behind which the prompt is cut off.
    At { messages: Vec<Value>, word: String },
}

/// What else is wanted of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wants {
    /// A form.
    pub(super) form: bool,
    /// A call of a tool.
    pub(super) call: bool,
}

/// How a conversation ends for its template.
///
/// # Errors
/// A last message that nothing can go on from.
pub(super) fn conversation_ending(
    messages: &[Value],
    continues: Continues,
    wants: Wants,
) -> Result<ConversationEnding, ApiError> {
    let last = messages.last().filter(|last| last["role"] == "assistant");
    let last = match (continues, last) {
        (Continues::Never, _) | (Continues::AsItIs, None) => return Ok(ConversationEnding::Whole),
        (Continues::Always, None) => {
            let what = "`continue_final_message` goes on from the assistant's message, and the last is another's";
            return Err(ApiError::field("continue_final_message", what));
        }
        (_, Some(last)) => last,
    };
    let field = format!("messages[{}]", messages.len() - 1);
    let refused = |why: &str| Err(ApiError::field(&field, format!("`{field}` cannot be gone on from: {why}")));
    if last["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty()) {
        return refused("it calls tools; send their results behind it");
    }
    let text = text(last);
    if text.is_empty() {
        return match last["reasoning_content"].as_str() {
            Some(thought) if !thought.is_empty() => refused("it has thoughts and no text; leave it out"),
            _ => Ok(ConversationEnding::Without),
        };
    }
    if wants.form {
        return refused("a form is asked for, and it holds for the whole of an answer; leave one of the two out");
    }
    if wants.call {
        return refused("`tool_choice` asks for a call, which is a message of its own");
    }
    let whole = serde_json::to_string(messages).unwrap_or_default();
    let word = (0_u32..).map(|n| format!("goes{n}on{n}here")).find(|word| !whole.contains(word.as_str()));
    let word = word.unwrap_or_default();
    let mut messages = messages.to_vec();
    if let Some(last) = messages.last_mut() {
        put_behind(last, &word);
    }
    Ok(ConversationEnding::At { messages, word })
}

/// The text of a message, which may be in parts.
pub(super) fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn put_behind(message: &mut Value, word: &str) {
    match &mut message["content"] {
        Value::String(text) => text.push_str(word),
        Value::Array(parts) => {
            if let Some(Value::String(text)) = parts.iter_mut().rev().find_map(|part| part.get_mut("text")) {
                text.push_str(word);
            }
        }
        _ => {}
    }
}

/// A rendered conversation up to the word.
///
/// # Errors
/// A template that does not show the end of the last message as it was sent.
pub(super) fn cut(mut rendered: String, word: &str, messages: &[Value]) -> Result<String, ApiError> {
    let Some(at) = rendered.rfind(word) else {
        let field = format!("messages[{}]", messages.len() - 1);
        let what = format!(
            "`{field}` cannot be gone on from: the model's chat template leaves its text out; end with another's message"
        );
        return Err(ApiError::field(field, what));
    };
    rendered.truncate(at);
    Ok(rendered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_fields_say_together() {
        let read = |asked, prompt, prefix: Value| {
            let mut messages = [json!({"role": "assistant", "content": "a", "prefix": prefix})];
            Continues::read(asked, prompt, &mut messages).ok()
        };
        for (asked, prompt, prefix, wanted) in [
            (None, None, Value::Null, Some(Continues::AsItIs)),
            (Some(true), Some(false), Value::Null, Some(Continues::Always)),
            (Some(true), None, json!(true), Some(Continues::Always)),
            (None, Some(true), json!(true), Some(Continues::Always)),
            (Some(false), None, json!(false), Some(Continues::Never)),
            (None, Some(true), Value::Null, Some(Continues::Never)),
            (None, Some(false), Value::Null, Some(Continues::Never)),
            (Some(true), Some(true), Value::Null, None),
            (Some(false), None, json!(true), None),
            (None, None, json!("yes"), None),
        ] {
            assert_eq!(read(asked, prompt, prefix.clone()), wanted, "{asked:?} {prompt:?} {prefix}");
        }
        let mut of_user = [json!({"role": "user", "content": "a", "prefix": true})];
        assert!(Continues::read(None, None, &mut of_user).is_err());
    }

    #[test]
    fn the_word_stands_behind_the_text_and_nowhere_else() {
        for content in [json!("a goes0on0here"), json!([{"type": "text", "text": "goes0on0here"}, {"type": "image"}])] {
            let sent = [json!({"role": "assistant", "content": content})];
            let Ok(ConversationEnding::At { messages, word }) =
                conversation_ending(&sent, Continues::AsItIs, Wants::default())
            else {
                panic!("{content}")
            };
            assert_eq!(word, "goes1on1here");
            assert!(text(&messages[0]).ends_with("goes0on0heregoes1on1here"));
        }
    }

    #[test]
    fn what_cannot_be_gone_on_from_is_refused() {
        let call = json!({"function": {"name": "f", "arguments": {}}});
        for last in [
            json!({"role": "assistant", "content": "a", "tool_calls": [call]}),
            json!({"role": "assistant", "content": "", "reasoning_content": "hm"}),
            json!({"role": "assistant", "content": null, "reasoning_content": "hm"}),
        ] {
            let sent = [last.clone()];
            assert!(conversation_ending(&sent, Continues::AsItIs, Wants::default()).is_err(), "{last}");
            assert!(matches!(
                conversation_ending(&sent, Continues::Never, Wants::default()),
                Ok(ConversationEnding::Whole)
            ));
        }
        for empty in [json!(""), Value::Null, json!([])] {
            let sent = [json!({"role": "assistant", "content": empty})];
            assert!(
                matches!(
                    conversation_ending(&sent, Continues::AsItIs, Wants::default()),
                    Ok(ConversationEnding::Without)
                ),
                "{empty}"
            );
        }
        let of_user = [json!({"role": "user", "content": "a"})];
        assert!(conversation_ending(&of_user, Continues::Always, Wants::default()).is_err());
    }
}
