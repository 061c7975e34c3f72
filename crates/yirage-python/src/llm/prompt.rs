//! Prompts: texts, token ids, and vLLM's dictionaries of them.

use super::params::SamplingParams;
use crate::failure::{Class, Failure, Outcome};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use yirage_engine::Request;
use yirage_model::chat::ChatTemplate;
use yirage_model::tokenizer::EncodeOptions;
use yirage_session::{Job, Model, SessionError, Texts};

/// What stands before a word that is looked at as part of a text.
const ANCHOR: &str = "a";

/// A prompt as tokens, with its text where it had one.
#[derive(Clone)]
pub(super) struct Prompt {
    pub(super) text: Option<String>,
    pub(super) ids: Vec<u32>,
}

/// The prompts of an argument: one or a list.
///
/// # Errors
/// A `RequestError` for what is no prompt, and for texts of a model without a tokenizer.
pub(super) fn prompts(given: &Bound<'_, PyAny>, texts: Option<&Texts>) -> Outcome<Vec<Prompt>> {
    let items = if let Ok(list) = given.cast::<PyList>() {
        list.iter().collect::<Vec<_>>()
    } else if let Ok(tuple) = given.cast::<PyTuple>() {
        tuple.iter().collect()
    } else {
        return Ok(vec![prompt(given, 0, texts)?]);
    };
    // A list of numbers is one prompt.
    if !items.is_empty() && items.iter().all(|item| item.extract::<u32>().is_ok()) {
        return Ok(vec![Prompt { text: None, ids: given.extract()? }]);
    }
    items.iter().enumerate().map(|(number, item)| prompt(item, number, texts)).collect()
}

fn prompt(given: &Bound<'_, PyAny>, number: usize, texts: Option<&Texts>) -> Outcome<Prompt> {
    if let Ok(text) = given.cast::<PyString>() {
        return of_text(&text.to_string(), texts);
    }
    if let Ok(fields) = given.cast::<PyDict>() {
        if let Some(ids) = fields.get_item("prompt_token_ids")? {
            let text = fields.get_item("prompt")?.map(|text| text.extract()).transpose()?;
            return Ok(Prompt { text, ids: ids.extract()? });
        }
        if let Some(text) = fields.get_item("prompt")? {
            return of_text(&text.extract::<String>()?, texts);
        }
    }
    if let Ok(ids) = given.extract::<Vec<u32>>() {
        return Ok(Prompt { text: None, ids });
    }
    let kind = given.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    let text = format!(
        "prompt {number} is a `{kind}`: a text, token ids, or a dict with `prompt` or `prompt_token_ids` is wanted"
    );
    Err(Failure::Ours(Class::Request, text))
}

fn of_text(text: &str, texts: Option<&Texts>) -> Outcome<Prompt> {
    let texts = texts.ok_or_else(no_texts)?;
    Ok(Prompt { text: Some(text.to_owned()), ids: texts.encode_raw(text, None)? })
}

/// What a model without a tokenizer says to texts.
pub(super) fn no_texts() -> Failure {
    Failure::Ours(Class::Request, "the model has no tokenizer: give token ids as prompt_token_ids".into())
}

/// The tokens of a conversation through the model's template.
///
/// # Errors
/// A model without tokenizer or template, and messages that the template refuses.
pub(super) fn conversation(py: Python<'_>, texts: &Texts, messages: &Bound<'_, PyAny>) -> Outcome<Vec<u32>> {
    let text: String = py.import("json")?.call_method1("dumps", (messages,))?.extract()?;
    let wrong = |why: String| Failure::Ours(Class::Request, format!("messages: {why}"));
    let messages: Vec<serde_json::Value> = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
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
pub(super) fn job(model: &Model, prompt: &Prompt, params: &SamplingParams, seed: u64, choice: u32) -> Outcome<Job> {
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
