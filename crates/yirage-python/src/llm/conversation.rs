//! Conversations as Python has them: lists of messages, whose parts are texts and pictures.

use super::pictures::{of_url, picture};
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::kind;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use yirage_model::chat::ChatTemplate;
use yirage_session::PreparedPicture;
use yirage_session::{ModelHandle, SessionError, TextProcessor};

/// A conversation as templates expect it, and its pictures in order.
pub(super) struct Conversation {
    messages: Vec<Value>,
    pub(super) pictures: Vec<Arc<PreparedPicture>>,
}

impl Conversation {
    /// Reads messages; their pictures where there is a model that reads them, else only where they stand.
    ///
    /// # Errors
    /// A `RequestError` for messages that are none, by their place, and for pictures that the model does not read.
    pub(super) fn read(messages: &Bound<'_, PyAny>, model: Option<&ModelHandle>) -> PyOutcome<Conversation> {
        let list = messages.cast::<PyList>().map_err(|_| no_conversation(messages))?;
        let mut pictures = Vec::new();
        let shown = PyList::empty(messages.py());
        for (at, message) in list.iter().enumerate() {
            shown.append(without_pictures(&message, at, model, &mut pictures)?)?;
        }
        let text: String = messages.py().import("json")?.call_method1("dumps", (shown,))?.extract()?;
        let messages: Vec<Value> = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if messages.is_empty() {
            return Err(wrong("there is none; give one at least".into()));
        }
        let one = |(at, message)| plain(message).map_err(|why| wrong(format!("message {at}: {why}")));
        let messages = messages.into_iter().enumerate().map(one).collect::<PyOutcome<Vec<_>>>()?;
        let contents = messages.iter().filter_map(|message| message["content"].as_array());
        let places = contents.flatten().filter(|part| is_place(part)).count();
        if model.is_some() && places != pictures.len() {
            let given = pictures.len();
            return Err(wrong(format!("{places} parts are pictures, and {given} have one: give each as 'image'")));
        }
        Ok(Conversation { messages, pictures })
    }

    /// Its tokens through the model's template.
    ///
    /// # Errors
    /// A model without a template, and messages that the template refuses.
    pub(super) fn encode(&self, texts: &TextProcessor) -> PyOutcome<Vec<u32>> {
        let chosen = texts.templates.choose(None, false).map_err(SessionError::from)?;
        let none = || wrong("the model has no chat template: use generate with a prompt of your own".into());
        let (name, source) = chosen.ok_or_else(none)?;
        let template = ChatTemplate::new(name, source).map_err(SessionError::from)?;
        Ok(texts.encode_chat(&template, &self.messages)?)
    }
}

fn wrong(why: String) -> PyFailure {
    PyFailure::Ours(Class::Request, format!("messages: {why}"))
}

/// What is said to an argument that is no conversation.
pub(super) fn no_conversation(given: &Bound<'_, PyAny>) -> PyFailure {
    let wanted = "a list of messages such as {'role': 'user', 'content': 'Hello'}, or a list of such lists, is wanted";
    PyFailure::Raised(PyTypeError::new_err(format!("the conversation is a `{}`: {wanted}", kind(given))))
}

/// A message whose pictures went to `pictures`, with `{'type': 'image'}` in the place of each.
fn without_pictures<'py>(
    message: &Bound<'py, PyAny>,
    at: usize,
    model: Option<&ModelHandle>,
    pictures: &mut Vec<Arc<PreparedPicture>>,
) -> PyOutcome<Bound<'py, PyAny>> {
    let Ok(fields) = message.cast::<PyDict>() else { return Ok(message.clone()) };
    let Some(content) = fields.get_item("content")? else { return Ok(message.clone()) };
    let Ok(parts) = content.cast_into::<PyList>() else { return Ok(message.clone()) };
    let (shown, mut any) = (PyList::empty(message.py()), false);
    for part in &parts {
        match of_part(&part)? {
            None => shown.append(part)?,
            Some(given) => {
                any = true;
                if let Some(model) = model {
                    pictures.push(given.read(model)?);
                }
                let place = PyDict::new(message.py());
                place.set_item("type", "image")?;
                shown.append(place)?;
            }
        }
    }
    if !any {
        return Ok(message.clone());
    }
    let role = fields.get_item("role")?.and_then(|role| role.extract::<String>().ok());
    if role.as_deref() != Some("user") {
        return Err(wrong(format!("message {at}: pictures are parts of messages with the `role` 'user'")));
    }
    let copy = fields.copy()?;
    copy.set_item("content", shown)?;
    Ok(copy.into_any())
}

/// What a part gives as its picture.
enum GivenPicture<'py> {
    Url(String, Python<'py>),
    Object(Bound<'py, PyAny>),
}

impl GivenPicture<'_> {
    fn read(&self, model: &ModelHandle) -> PyOutcome<Arc<PreparedPicture>> {
        match self {
            GivenPicture::Url(url, py) => of_url(url, model, *py),
            GivenPicture::Object(given) => picture(given, model),
        }
    }
}

/// The picture of a part that is one. One without its picture is a part as it is.
fn of_part<'py>(part: &Bound<'py, PyAny>) -> PyOutcome<Option<GivenPicture<'py>>> {
    let Ok(fields) = part.cast::<PyDict>() else { return Ok(None) };
    let kind = fields.get_item("type")?.and_then(|kind| kind.extract::<String>().ok());
    let Some(key @ ("image_url" | "image_pil" | "image")) = kind.as_deref() else { return Ok(None) };
    let Some(given) = fields.get_item(key)? else { return Ok(None) };
    if key != "image_url" {
        return Ok(Some(GivenPicture::Object(given)));
    }
    let url = match given.cast::<PyDict>() {
        Ok(of) => of.get_item("url")?,
        Err(_) => Some(given),
    };
    let url = url.and_then(|url| url.extract::<String>().ok());
    Ok(url.map(|url| GivenPicture::Url(url, part.py())))
}

/// A message as templates expect it: parts of text are joined where there are no pictures, and what an assistant does not
/// say is an empty text.
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
        Some(Value::String(text)) => text.into(),
        None | Some(Value::Null) if assistant => "".into(),
        None | Some(Value::Null) => return Err("its `content` is missing; give a text".into()),
        Some(Value::Array(parts)) if parts.iter().any(is_place) => {
            parts.iter().map(place_or_text).collect::<Result<_, _>>()?
        }
        Some(Value::Array(parts)) => parts.iter().map(text_of).collect::<Result<String, _>>()?.into(),
        Some(other) => return Err(format!("its `content` is {other}; give a text, or a list of parts of text")),
    };
    fields.insert("content".into(), content);
    Ok(Value::Object(fields))
}

/// Whether a part is what stands in the place of a picture that was read.
fn is_place(part: &Value) -> bool {
    let only_type = |fields: &Map<String, Value>| fields.len() == 1;
    part["type"] == "image" && part.as_object().is_some_and(only_type)
}

fn place_or_text(part: &Value) -> Result<Value, String> {
    if is_place(part) { Ok(part.clone()) } else { Ok(json!({"type": "text", "text": text_of(part)?})) }
}

fn text_of(part: &Value) -> Result<&str, String> {
    let text = if part["type"] == "text" { part["text"].as_str() } else { part.as_str() };
    text.ok_or_else(|| {
        format!(
            "a part of its `content` is {part}; {{'type': 'text', 'text': '...'}} is understood, and pictures as \
             {{'type': 'image_url', 'image_url': {{'url': 'data:image/png;base64,...'}}}} or \
             {{'type': 'image_pil', 'image_pil': picture}}"
        )
    })
}
