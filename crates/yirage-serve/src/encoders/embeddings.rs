//! POST /v1/embeddings.

use super::encode::{check_inputs, embed};
use crate::app::App;
use crate::call::{Posted, RequestContext};
use crate::error::ApiError;
use crate::fields::{FieldSpec, Fields, honoured, refused};
use crate::limits::MAX_INPUTS;
use crate::openai::hints::{USER, hints};
use crate::prompt::{PromptInput, prompts};
use crate::reply::{self, with_ignored};
use axum::extract::State;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::sync::Arc;

/// The fields of it.
pub(crate) const EMBEDDINGS: &[&[FieldSpec]] = &[&[
    honoured("model", r#"{"type":"string"}"#),
    honoured("input", r#"{"anyOf":[{"type":"string"},{"type":"array","minItems":1}]}"#),
    honoured("encoding_format", r#"{"enum":["float","base64",null]}"#),
    USER,
    honoured("prompt_name", r#"{"type":["string","null"]}"#),
    honoured("dimensions", r#"{"type":["integer","null"],"minimum":1}"#),
    refused("truncate_prompt_tokens", "texts are never cut; shorten them", &[]),
]];

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| answer(app, &call, &body)).await
}

fn answer(app: &App, call: &RequestContext, body: &[u8]) -> Result<Response, ApiError> {
    let mut fields = Fields::parse(body, EMBEDDINGS)?;
    let model = fields.text("model")?;
    let held = app.models.lease(model.as_deref())?;
    let EmbeddingsRequest { inputs, dimensions, prompt, packed, ignored } = read(fields)?;
    let _open = app.live.enter(&call.id, held.entry.name());
    let (vectors, tokens) = embed(&held, &inputs, dimensions, prompt.as_deref())?;
    let data: Vec<Value> = vectors.iter().enumerate().map(|(index, vector)| one(index, vector, packed)).collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    let object = json!({"object": "list", "data": data, "model": held.entry.name(), "usage": usage});
    Ok(with_ignored(reply::json(&object), &ignored))
}

/// What a body asks of its model.
struct EmbeddingsRequest {
    inputs: Vec<PromptInput>,
    dimensions: Option<u32>,
    prompt: Option<String>,
    /// Whether vectors go as text of their bytes.
    packed: bool,
    ignored: Vec<String>,
}

fn read(mut fields: Fields) -> Result<EmbeddingsRequest, ApiError> {
    let input = fields.take("input");
    let inputs = prompts("input", fields.need("input", input)?, MAX_INPUTS)?;
    check_inputs("input", &inputs)?;
    let dimensions = fields.whole("dimensions", "a whole number from 1")?;
    let prompt = fields.text("prompt_name")?;
    let packed = match fields.text("encoding_format")?.as_deref() {
        None | Some("float") => false,
        Some("base64") => true,
        Some(_) => return Err(ApiError::field("encoding_format", "`encoding_format`: expected float or base64")),
    };
    let mut ignored = Vec::new();
    hints(&mut fields, &[USER], &mut ignored)?;
    fields.finish_into(&mut ignored)?;
    Ok(EmbeddingsRequest { inputs, dimensions, prompt, packed, ignored })
}

/// What changes nothing in a body.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, EMBEDDINGS)?;
    fields.text("model")?;
    Ok(read(fields)?.ignored)
}

fn one(index: usize, vector: &[f32], packed: bool) -> Value {
    let embedding = match packed {
        // Little-endian f32, as OpenAI's clients unpack it.
        true => STANDARD.encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).into(),
        false => json!(vector),
    };
    json!({"object": "embedding", "index": index, "embedding": embedding})
}
