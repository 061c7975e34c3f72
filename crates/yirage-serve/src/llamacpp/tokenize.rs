//! POST /tokenize, /detokenize and /apply-template.

use crate::app::App;
use crate::call::Posted;
use crate::error::ApiError;
use crate::fields::{FieldSpec, FieldTable, Fields, honoured, ignored};
use crate::generate::Talk;
use crate::models::{ModelLease, Served};
use crate::openai::CHAT;
use crate::openai::chat::talk;
use crate::reply::{self, with_ignored};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use yirage_model::tokenizer::{EncodeOptions, Tokenizer};

const MODEL: FieldSpec = honoured("model", r#"{"type":["string","null"]}"#);
const SWITCH: &str = r#"{"type":["boolean","null"]}"#;

/// The fields of llama.cpp's form.
pub(crate) const TOKENIZE: FieldTable = &[&[
    MODEL,
    honoured("content", r#"{"type":"string"}"#),
    honoured("add_special", SWITCH),
    honoured("parse_special", SWITCH),
    honoured("with_pieces", SWITCH),
]];

/// The fields of vLLM's form for a text.
pub(crate) const VLLM: FieldTable = &[&[
    MODEL,
    honoured("prompt", r#"{"type":"string"}"#),
    honoured("add_special_tokens", SWITCH),
    honoured("return_token_strs", SWITCH),
]];

/// What vLLM's form for a conversation has beside the fields of one.
const STRINGS: &[FieldSpec] = &[honoured("return_token_strs", SWITCH), ignored("add_special_tokens", SWITCH)];

/// vLLM's form for a conversation.
pub(crate) const CONVERSATION: FieldTable = &[CHAT[0], CHAT[1], CHAT[2], CHAT[3], STRINGS];

/// The fields of /detokenize.
pub(crate) const DETOKENIZE: FieldTable =
    &[&[MODEL, honoured("tokens", r#"{"type":"array","items":{"type":"integer"}}"#)]];

fn tokenizer(held: &ModelLease) -> Result<&Tokenizer, ApiError> {
    match &*held.served {
        Served::Generator(generator) => Ok(&generator.texts()?.tokenizer),
        Served::Encoder(encoder) => Ok(encoder.tokenizer()),
    }
}

/// A body of /tokenize in one of its forms, its model aside.
enum TokenizeRequest {
    Content { text: String, add_special: bool, parse_special: bool, with_pieces: bool },
    Prompt { text: String, add_special: bool, strings: bool },
    Conversation { talk: Box<Talk>, strings: bool, ignored: Vec<String> },
}

/// The model that a body names, and the rest of it; which form it is its fields say.
fn read(body: &[u8]) -> Result<(Option<String>, TokenizeRequest), ApiError> {
    let sent: Value = serde_json::from_slice(body).unwrap_or_default();
    if sent.get("messages").is_some() {
        let mut fields = Fields::parse(body, CONVERSATION)?;
        let model = fields.text("model")?;
        let strings = fields.switch("return_token_strs")?.unwrap_or(false);
        let talk = Box::new(talk(&mut fields)?);
        let ignored = fields.finish_part()?;
        return Ok((model, TokenizeRequest::Conversation { talk, strings, ignored }));
    }
    if sent.get("prompt").is_some() {
        let mut fields = Fields::parse(body, VLLM)?;
        let (model, text) = (fields.text("model")?, fields.text("prompt")?);
        let text = fields.need("prompt", text)?;
        let add_special = fields.switch("add_special_tokens")?.unwrap_or(true);
        let strings = fields.switch("return_token_strs")?.unwrap_or(false);
        fields.finish()?;
        return Ok((model, TokenizeRequest::Prompt { text, add_special, strings }));
    }
    let mut fields = Fields::parse(body, TOKENIZE)?;
    let (model, text) = (fields.text("model")?, fields.text("content")?);
    let text = fields.need("content", text)?;
    let add_special = fields.switch("add_special")?.unwrap_or(false);
    let parse_special = fields.switch("parse_special")?.unwrap_or(true);
    let with_pieces = fields.switch("with_pieces")?.unwrap_or(false);
    fields.finish()?;
    Ok((model, TokenizeRequest::Content { text, add_special, parse_special, with_pieces }))
}

/// What changes nothing in a body of /tokenize.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    match read(body)?.1 {
        TokenizeRequest::Conversation { talk, ignored, .. } => Ok([ignored, talk.ignored].concat()),
        TokenizeRequest::Content { .. } | TokenizeRequest::Prompt { .. } => Ok(Vec::new()),
    }
}

/// POST /tokenize.
pub(crate) async fn tokenize(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let (model, sent) = read(&body)?;
        let held = app.models.lease(model.as_deref())?;
        let tokenizer = tokenizer(&held)?;
        match sent {
            TokenizeRequest::Content { text, add_special, parse_special, with_pieces } => {
                let ids = encode(tokenizer, &text, EncodeOptions { add_special, parse_special }, "content")?;
                Ok(listed(tokenizer, &ids, with_pieces))
            }
            TokenizeRequest::Prompt { text, add_special, strings } => {
                let options = EncodeOptions { add_special, parse_special: true };
                counted(&held, tokenizer, &encode(tokenizer, &text, options, "prompt")?, strings)
            }
            TokenizeRequest::Conversation { talk, strings, ignored } => {
                let rendered = talk.render(held.generator()?)?;
                let ignored = [ignored, talk.ignored, rendered.ignored].concat();
                Ok(with_ignored(counted(&held, tokenizer, &rendered.ids, strings)?, &ignored))
            }
        }
    })
    .await
}

/// llama.cpp's answer.
fn listed(tokenizer: &Tokenizer, ids: &[u32], with_pieces: bool) -> Response {
    let piece = |&id: &u32| {
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        // What is no text by itself is given as bytes.
        let piece = std::str::from_utf8(&bytes).map_or_else(|_| json!(bytes), Value::from);
        json!({"id": id, "piece": piece})
    };
    let tokens: Value = if with_pieces { ids.iter().map(piece).collect() } else { json!(ids) };
    reply::json(&json!({"tokens": tokens}))
}

fn encode(tokenizer: &Tokenizer, text: &str, options: EncodeOptions, field: &str) -> Result<Vec<u32>, ApiError> {
    tokenizer.encode(text, options).map_err(|e| ApiError::field(field, e.to_string()))
}

fn counted(held: &ModelLease, tokenizer: &Tokenizer, ids: &[u32], strings: bool) -> Result<Response, ApiError> {
    let pieces = || ids.iter().map(|&id| tokenizer.piece(id)).collect::<Vec<_>>();
    Ok(reply::json(&json!({
        "count": ids.len(),
        "max_model_len": held.served.context(),
        "tokens": ids,
        "token_strs": if strings { json!(pieces()) } else { Value::Null },
    })))
}

/// The model and the ids that a body of /detokenize names.
fn read_ids(body: &[u8]) -> Result<(Option<String>, Vec<u32>), ApiError> {
    let mut fields = Fields::parse(body, DETOKENIZE)?;
    let model = fields.text("model")?;
    let ids = fields.ids("tokens")?;
    let ids = fields.need("tokens", ids)?;
    fields.finish()?;
    Ok((model, ids))
}

/// What changes nothing in a body of /detokenize: nothing.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check_ids(body: &[u8]) -> Result<Vec<String>, ApiError> {
    read_ids(body).map(|_| Vec::new())
}

/// POST /detokenize: the text under llama.cpp's name and under vLLM's.
pub(crate) async fn detokenize(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let (model, ids) = read_ids(&body)?;
        let held = app.models.lease(model.as_deref())?;
        let tokenizer = tokenizer(&held)?;
        if let Some(at) = ids.iter().position(|&id| tokenizer.piece(id).is_none()) {
            let what = format!("`tokens[{at}]`: the model has no token {}", ids[at]);
            return Err(ApiError::field(format!("tokens[{at}]"), what));
        }
        let text = tokenizer.decode(&ids, false);
        Ok(reply::json(&json!({"content": text, "prompt": text})))
    })
    .await
}

/// POST /apply-template: the text that a conversation becomes.
pub(crate) async fn apply(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let mut fields = Fields::parse(&body, CHAT)?;
        let model = fields.text("model")?;
        let held = app.models.lease(model.as_deref())?;
        let talk = talk(&mut fields)?;
        let rendered = talk.render(held.generator()?)?;
        let ignored = [fields.finish_part()?, talk.ignored, rendered.ignored].concat();
        Ok(with_ignored(reply::json(&json!({"prompt": rendered.text})), &ignored))
    })
    .await
}
