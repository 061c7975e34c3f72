//! Prompts: texts, token ids, and vLLM's dictionaries of them.

use super::params::PySamplingParams;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::{all_within, kind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use serde_json::Value;
use yirage_engine::Request;
use yirage_model::chat::ChatTemplate;
use yirage_model::tokenizer::EncodeOptions;
use yirage_session::{Job, ModelHandle, SessionError, TextProcessor};

/// What stands before a word that is looked at as part of a text.
const ANCHOR: &str = "a";

/// A prompt as tokens, with its text where it had one.
#[derive(Clone)]
pub(super) struct TokenizedPrompt {
    pub(super) text: Option<String>,
    pub(super) ids: Vec<u32>,
}

/// The prompts of an argument: one or a list.
///
/// # Errors
/// A `RequestError` for what is no prompt, and for texts of a model without a tokenizer.
pub(super) fn prompts(given: &Bound<'_, PyAny>, texts: Option<&TextProcessor>) -> PyOutcome<Vec<TokenizedPrompt>> {
    let items = if let Ok(list) = given.cast::<PyList>() {
        list.iter().collect::<Vec<_>>()
    } else if let Ok(tuple) = given.cast::<PyTuple>() {
        tuple.iter().collect()
    } else {
        return Ok(vec![prompt(given, 0, texts)?]);
    };
    // A list of numbers is one prompt.
    if !items.is_empty() && items.iter().all(|item| item.extract::<u32>().is_ok()) {
        return Ok(vec![TokenizedPrompt { text: None, ids: given.extract()? }]);
    }
    items.iter().enumerate().map(|(number, item)| prompt(item, number, texts)).collect()
}

fn prompt(given: &Bound<'_, PyAny>, number: usize, texts: Option<&TextProcessor>) -> PyOutcome<TokenizedPrompt> {
    if let Ok(text) = given.cast::<PyString>() {
        return of_text(&text.to_string(), texts);
    }
    if let Ok(fields) = given.cast::<PyDict>() {
        if let Some(ids) = fields.get_item("prompt_token_ids")? {
            let text = fields.get_item("prompt")?.map(|text| text.extract()).transpose()?;
            return Ok(TokenizedPrompt { text, ids: tokens(&ids, number)? });
        }
        if let Some(text) = fields.get_item("prompt")? {
            return of_text(&text.extract::<String>()?, texts);
        }
    }
    if let Ok(ids) = given.extract::<Vec<u32>>() {
        return Ok(TokenizedPrompt { text: None, ids });
    }
    let text = format!(
        "prompt {number} is a `{}`: a text, token ids, or a dict with `prompt` or `prompt_token_ids` is wanted",
        kind(given)
    );
    Err(PyFailure::Ours(Class::Request, text))
}

fn tokens(ids: &Bound<'_, PyAny>, number: usize) -> PyOutcome<Vec<u32>> {
    let wrong = |why: PyErr| {
        let text = format!("prompt_token_ids of prompt {number}: {}", why.value(ids.py()));
        PyFailure::Ours(Class::Request, text)
    };
    all_within(ids, Class::Request).map_err(wrong)
}

fn of_text(text: &str, texts: Option<&TextProcessor>) -> PyOutcome<TokenizedPrompt> {
    let texts = texts.ok_or_else(no_texts)?;
    Ok(TokenizedPrompt { text: Some(text.to_owned()), ids: texts.encode_raw(text, None)? })
}

/// What a model without a tokenizer says to texts.
pub(super) fn no_texts() -> PyFailure {
    PyFailure::Ours(Class::Request, "the model has no tokenizer: give token ids as prompt_token_ids".into())
}

/// What is said to an argument that is no conversation.
pub(super) fn no_conversation(given: &Bound<'_, PyAny>) -> PyFailure {
    let wanted = "a list of messages such as {'role': 'user', 'content': 'Hello'}, or a list of such lists, is wanted";
    PyFailure::Raised(PyTypeError::new_err(format!("the conversation is a `{}`: {wanted}", kind(given))))
}

/// A message as templates expect it: parts of text are joined, and what an assistant does not say is an empty text.
///
/// # Errors
/// What is wrong with it.
fn plain(message: Value) -> Result<Value, String> {
    let Value::Object(mut fields) = message else {
        return Err(format!("{message} is no dict with `role` and `content`"));
    };
    let Some(assistant) = fields.get("role").and_then(Value::as_str).map(|role| role == "assistant") else {
        return Err("its `role` is missing or no text; give 'system', 'user', 'assistant' or 'tool'".into());
    };
    let content = match fields.remove("content") {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) if assistant => String::new(),
        None | Some(Value::Null) => return Err("its `content` is missing; give a text".into()),
        Some(Value::Array(parts)) => parts.iter().map(of_part).collect::<Result<_, _>>()?,
        Some(other) => return Err(format!("its `content` is {other}; give a text, or a list of parts of text")),
    };
    fields.insert("content".into(), content.into());
    Ok(Value::Object(fields))
}

fn of_part(part: &Value) -> Result<&str, String> {
    let text = if part["type"] == "text" { part["text"].as_str() } else { part.as_str() };
    text.ok_or_else(|| {
        format!("a part of its `content` is {part}; only {{'type': 'text', 'text': '...'}} is understood")
    })
}

/// The tokens of a conversation through the model's template.
///
/// # Errors
/// A model without tokenizer or template, messages that are none, and those that the template refuses.
pub(super) fn conversation(py: Python<'_>, texts: &TextProcessor, messages: &Bound<'_, PyAny>) -> PyOutcome<Vec<u32>> {
    if !messages.is_instance_of::<PyList>() {
        return Err(no_conversation(messages));
    }
    let text: String = py.import("json")?.call_method1("dumps", (messages,))?.extract()?;
    let wrong = |why: String| PyFailure::Ours(Class::Request, format!("messages: {why}"));
    let messages: Vec<Value> = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    if messages.is_empty() {
        return Err(wrong("there is none; give one at least".into()));
    }
    let one = |(at, message)| plain(message).map_err(|why| wrong(format!("message {at}: {why}")));
    let messages = messages.into_iter().enumerate().map(one).collect::<PyOutcome<Vec<_>>>()?;
    let chosen = texts.templates.choose(None, false).map_err(SessionError::from)?;
    let (name, source) =
        chosen.ok_or_else(|| wrong("the model has no chat template: use generate with a prompt of your own".into()))?;
    let template = ChatTemplate::new(name, source).map_err(SessionError::from)?;
    Ok(texts.encode_chat(&template, &messages)?)
}

/// The job of a choice of a prompt.
///
/// # Errors
/// A `RequestError` for bad words that make no token.
pub(super) fn job(
    model: &ModelHandle,
    prompt: &TokenizedPrompt,
    params: &PySamplingParams,
    seed: u64,
    choice: u32,
) -> PyOutcome<Job> {
    let (min, max) = params.tokens();
    let mut stop_ids: Vec<u32> = if params.ignores_ends() { Vec::new() } else { model.ends().to_vec() };
    stop_ids.extend(params.stop_ids());
    stop_ids.sort_unstable();
    stop_ids.dedup();
    let mut bad_words = Vec::new();
    for word in params.bad_words() {
        let texts = model.texts().ok_or_else(no_texts)?;
        let options = EncodeOptions { add_special: false, parse_special: false };
        let encode = |text: &str| texts.tokenizer.encode(text, options).map_err(SessionError::from);
        // At the beginning of a text, behind a space, and joined to what stands before it.
        let (anchor, joined) = (encode(ANCHOR)?, encode(&format!("{ANCHOR}{word}"))?);
        let joined = joined.strip_prefix(anchor.as_slice()).unwrap_or_default().to_vec();
        for ids in [encode(word)?, encode(&format!(" {}", word.trim_start()))?, joined] {
            if !ids.is_empty() && !bad_words.contains(&ids) {
                bad_words.push(ids);
            }
        }
    }
    let request = Request {
        max_new_tokens: max,
        min_new_tokens: min,
        stop_ids,
        sampling: params.sampling(seed, choice)?,
        allowed_tokens: params.allowed().cloned(),
        bad_words,
        prompt_logprobs: params.prompt_logprobs(),
        ..Request::greedy(prompt.ids.clone(), 1)
    };
    Ok(Job { stops: params.stops().to_vec(), ..Job::new(request) })
}
