//! POST /api/embed and the older /api/embeddings.

use super::keep::keep;
use super::options::untagged;
use crate::app::App;
use crate::call::Posted;
use crate::encoders::embed;
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured, ignored};
use crate::limits::MAX_INPUTS;
use crate::models::KeepAlive;
use crate::prompt::{PromptInput, prompts};
use crate::reply::{self, with_ignored};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// The fields of /api/embed.
pub(crate) const EMBED: FieldTable = &[&[
    honoured("model", r#"{"type":"string"}"#),
    honoured("input", r#"{"anyOf":[{"type":"string"},{"type":"array"}]}"#),
    honoured("keep_alive", r#"{"type":["string","number","null"]}"#),
    ignored("options", "{}"),
    ignored("truncate", r#"{"type":"boolean"}"#),
    honoured("dimensions", r#"{"type":["integer","null"],"minimum":0}"#),
]];

/// The fields of /api/embeddings.
pub(crate) const OLD: FieldTable = &[&[
    honoured("model", r#"{"type":"string"}"#),
    honoured("prompt", r#"{"type":"string"}"#),
    honoured("keep_alive", r#"{"type":["string","number","null"]}"#),
    ignored("options", "{}"),
]];

/// What a body asks of its model.
struct OllamaEmbedRequest {
    /// None where the text is one of nothing, as ollama has it.
    inputs: Vec<PromptInput>,
    dimensions: Option<u32>,
    keep: Option<KeepAlive>,
    ignored: Vec<String>,
}

fn read(mut fields: Fields) -> Result<OllamaEmbedRequest, ApiError> {
    let inputs = match fields.take("input") {
        None => return Err(ApiError::field("input", "`input` is missing")),
        Some(Value::Array(list)) if list.is_empty() => Vec::new(),
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(input) => prompts("input", input, MAX_INPUTS)?,
    };
    // 0 is what ollama's own client sends for none.
    let dimensions = fields.whole("dimensions", "a whole number from 1")?.filter(|wanted| *wanted != 0);
    let keep = keep(&mut fields)?;
    Ok(OllamaEmbedRequest { inputs, dimensions, keep, ignored: fields.finish()? })
}

fn read_old(mut fields: Fields) -> Result<OllamaEmbedRequest, ApiError> {
    let prompt = fields.text("prompt")?;
    let prompt = fields.need("prompt", prompt)?;
    let inputs = if prompt.is_empty() { Vec::new() } else { vec![PromptInput::Text(prompt)] };
    let keep = keep(&mut fields)?;
    Ok(OllamaEmbedRequest { inputs, dimensions: None, keep, ignored: fields.finish()? })
}

/// What changes nothing in a body of /api/embed.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, EMBED)?;
    fields.text("model")?;
    Ok(read(fields)?.ignored)
}

/// What changes nothing in a body of /api/embeddings.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check_old(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, OLD)?;
    fields.text("model")?;
    Ok(read_old(fields)?.ignored)
}

/// POST /api/embed.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let began = Instant::now();
        let mut fields = Fields::parse(&body, EMBED)?;
        let model = untagged(app, fields.text("model")?);
        let held = app.models.lease(model.as_deref())?;
        let OllamaEmbedRequest { inputs, dimensions, keep, ignored } = read(fields)?;
        keep.iter().for_each(|keep| held.entry.keep(*keep));
        let _open = app.live.enter(&call.id, held.entry.name());
        let (vectors, tokens) = embed(&held, &inputs, dimensions, None)?;
        let object = json!({
            "model": held.entry.name(),
            "embeddings": vectors,
            "total_duration": u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            "load_duration": 0,
            "prompt_eval_count": tokens,
        });
        Ok(with_ignored(reply::json(&object), &ignored))
    })
    .await
}

/// POST /api/embeddings: one text, one vector.
pub(crate) async fn old(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let mut fields = Fields::parse(&body, OLD)?;
        let model = untagged(app, fields.text("model")?);
        let held = app.models.lease(model.as_deref())?;
        let OllamaEmbedRequest { inputs, keep, ignored, .. } = read_old(fields)?;
        keep.iter().for_each(|keep| held.entry.keep(*keep));
        let _open = app.live.enter(&call.id, held.entry.name());
        let (vectors, _) = embed(&held, &inputs, None, None)?;
        let object = json!({"embedding": vectors.into_iter().next().unwrap_or_default()});
        Ok(with_ignored(reply::json(&object), &ignored))
    })
    .await
}
