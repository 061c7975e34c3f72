//! Prompts: texts, token ids, and vLLM's dictionaries of them.

use super::conversation::Conversation;
use super::params::PySamplingParams;
use super::pictures::pictures;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::{all_within, kind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::sync::Arc;
use yirage_engine::Request;
use yirage_model::tokenizer::EncodeOptions;
use yirage_session::{Job, ModelHandle, PlacedPicture, PreparedPicture, SessionError, TextProcessor};

/// What stands before a word that is looked at as part of a text.
const ANCHOR: &str = "a";

/// A prompt as tokens, with its text where it had one.
#[derive(Clone)]
pub(super) struct TokenizedPrompt {
    pub(super) text: Option<String>,
    pub(super) ids: Vec<u32>,
    /// Pictures in it.
    pub(super) pictures: Vec<PlacedPicture>,
}

impl TokenizedPrompt {
    /// Ids and nothing else.
    fn of_ids(ids: Vec<u32>) -> TokenizedPrompt {
        TokenizedPrompt { text: None, ids, pictures: Vec::new() }
    }

    /// A conversation through the model's template.
    ///
    /// # Errors
    /// As [`Conversation::read`] and [`Conversation::encode`].
    pub(super) fn of_messages(messages: &Bound<'_, PyAny>, model: &ModelHandle) -> PyOutcome<TokenizedPrompt> {
        let texts = model.texts().ok_or_else(no_texts)?;
        let read = Conversation::read(messages, Some(model))?;
        TokenizedPrompt::of_ids(read.encode(texts)?).with_pictures(read.pictures, model)
    }

    /// The prompt with its pictures in their places.
    fn with_pictures(self, pictures: Vec<Arc<PreparedPicture>>, model: &ModelHandle) -> PyOutcome<TokenizedPrompt> {
        if pictures.is_empty() {
            return Ok(self);
        }
        let (ids, pictures) = model.pictures()?.place(&self.ids, pictures)?;
        Ok(TokenizedPrompt { ids, pictures, ..self })
    }
}

/// The prompts of an argument: one or a list.
///
/// # Errors
/// A `RequestError` for what is no prompt, and for texts of a model without a tokenizer.
pub(super) fn prompts(given: &Bound<'_, PyAny>, model: &ModelHandle) -> PyOutcome<Vec<TokenizedPrompt>> {
    let items = if let Ok(list) = given.cast::<PyList>() {
        list.iter().collect::<Vec<_>>()
    } else if let Ok(tuple) = given.cast::<PyTuple>() {
        tuple.iter().collect()
    } else {
        return Ok(vec![prompt(given, 0, model)?]);
    };
    // A list of numbers is one prompt.
    if !items.is_empty() && items.iter().all(|item| item.extract::<u32>().is_ok()) {
        return Ok(vec![TokenizedPrompt::of_ids(given.extract()?)]);
    }
    items.iter().enumerate().map(|(number, item)| prompt(item, number, model)).collect()
}

fn prompt(given: &Bound<'_, PyAny>, number: usize, model: &ModelHandle) -> PyOutcome<TokenizedPrompt> {
    let texts = model.texts();
    if let Ok(text) = given.cast::<PyString>() {
        return of_text(&text.to_string(), texts);
    }
    if let Ok(fields) = given.cast::<PyDict>() {
        if let Some(ids) = fields.get_item("prompt_token_ids")? {
            let text = fields.get_item("prompt")?.map(|text| text.extract()).transpose()?;
            let tokenized = TokenizedPrompt { text, ..TokenizedPrompt::of_ids(tokens(&ids, number)?) };
            return tokenized.with_pictures(of_multi_modal(fields, number, model)?, model);
        }
        if let Some(text) = fields.get_item("prompt")? {
            let tokenized = of_text(&text.extract::<String>()?, texts)?;
            return tokenized.with_pictures(of_multi_modal(fields, number, model)?, model);
        }
    }
    if let Ok(ids) = given.extract::<Vec<u32>>() {
        return Ok(TokenizedPrompt::of_ids(ids));
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
    let ids = texts.encode_raw(text, None)?;
    Ok(TokenizedPrompt { text: Some(text.to_owned()), ..TokenizedPrompt::of_ids(ids) })
}

/// The pictures of vLLM's `multi_modal_data`.
fn of_multi_modal(
    fields: &Bound<'_, PyDict>,
    number: usize,
    model: &ModelHandle,
) -> PyOutcome<Vec<Arc<PreparedPicture>>> {
    let unknown = |what: String, why: &str| PyFailure::unsupported(format!("{what} of prompt {number}"), why);
    if let Some(settings) = fields.get_item("mm_processor_kwargs")?
        && settings.is_truthy()?
    {
        let why = "pictures are prepared as the model's own files say";
        return Err(unknown(format!("mm_processor_kwargs={settings}"), why));
    }
    let Some(data) = fields.get_item("multi_modal_data")?.filter(|data| !data.is_none()) else { return Ok(Vec::new()) };
    let Ok(data) = data.cast_into::<PyDict>() else {
        let text = format!("multi_modal_data of prompt {number} is no dict: {{'image': picture}} is wanted");
        return Err(PyFailure::Ours(Class::Request, text));
    };
    let mut found = Vec::new();
    for (key, value) in &data {
        match key.extract::<String>()?.as_str() {
            _ if value.is_none() => {}
            "image" => found = pictures(&value, model)?,
            other => return Err(unknown(format!("multi_modal_data[{other:?}]"), "'image' is read")),
        }
    }
    Ok(found)
}

/// What a model without a tokenizer says to texts.
pub(super) fn no_texts() -> PyFailure {
    PyFailure::Ours(Class::Request, "the model has no tokenizer: give token ids as prompt_token_ids".into())
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
    Ok(Job { stops: params.stops().to_vec(), pictures: prompt.pictures.clone(), ..Job::new(request) })
}
