//! What llama.cpp's clients ask of the server itself: /props, loading and unloading.

use crate::app::App;
use crate::call::Posted;
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured};
use crate::reply;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde_json::json;
use std::sync::Arc;

/// GET /props, of the model that `?model=` names, else of the first.
pub(crate) async fn props(State(app): State<Arc<App>>, RawQuery(asked): RawQuery) -> Result<Response, ApiError> {
    let name = model_of_query(&app, asked.as_deref());
    app.work(move |app| {
        let held = app.models.lease_named(name.as_deref())?;
        let generator = held.generator()?;
        let generation = generator.model().generation();
        let template = generator.template_source().unwrap_or_default();
        let family = generator.template(true).map(|template| template.family).ok();
        let params = json!({
            "temperature": generation.temperature.unwrap_or(1.0),
            "top_k": generation.top_k.unwrap_or(0),
            "top_p": generation.top_p.unwrap_or(1.0),
            "min_p": generation.min_p.unwrap_or(0.0),
            "repeat_penalty": generation.repetition_penalty.unwrap_or(1.0),
        });
        Ok(reply::json(&json!({
            "default_generation_settings": {"n_ctx": generator.model().facts().context, "params": params},
            "total_slots": generator.max_seqs(),
            "model_alias": held.entry.name(),
            "model_path": held.entry.name(),
            "chat_template": template,
            "chat_template_caps": {
                "supports_tools": family.is_some_and(|family| family.calls.is_some()),
                // The form of calls and the mark behind thoughts that answers are read by.
                "tool_calls": family.and_then(|family| family.calls).map(|calls| calls.name()),
                "thoughts": family.and_then(|family| family.thoughts).map(|marks| marks.close),
            },
            "modalities": {"vision": false, "audio": false},
            "build_info": concat!("yirage-", env!("CARGO_PKG_VERSION")),
            "is_sleeping": false,
        })))
    })
    .await
}

/// The model of `model=NAME` in the query, else the first.
pub(super) fn model_of_query(app: &App, query: Option<&str>) -> Option<String> {
    let asked = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("model=")).map(decoded);
    asked.or_else(|| app.models.iter().next().map(|entry| entry.name().to_owned()))
}

/// A value of a query with its `%XX` as the bytes that they stand for.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, behind)) = rest.split_first() {
        let pair = behind.get(..2).filter(|_| first == b'%').and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The field of /models/load and /models/unload.
pub(crate) const NAME: FieldTable = &[&[honoured("model", r#"{"type":"string"}"#)]];

fn read_name(body: &[u8]) -> Result<Option<String>, ApiError> {
    let mut fields = Fields::parse(body, NAME)?;
    let model = fields.text("model")?;
    fields.finish()?;
    Ok(model)
}

/// What changes nothing in a body that names a model: nothing.
///
/// # Errors
/// What is no request, whatever the models.
pub(crate) fn check_name(body: &[u8]) -> Result<Vec<String>, ApiError> {
    read_name(body).map(|_| Vec::new())
}

/// POST /models/load.
pub(crate) async fn load(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let model = read_name(&body)?;
        app.models.lease_named(model.as_deref())?;
        Ok(reply::json(&json!({"success": true})))
    })
    .await
}

/// POST /models/unload.
pub(crate) async fn unload(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let model = read_name(&body)?;
        let was_loaded = app.models.unload(model.as_deref())?;
        Ok(reply::json(&json!({"success": true, "was_loaded": was_loaded})))
    })
    .await
}

/// GET /version, as vLLM has it.
pub(crate) async fn version() -> Response {
    reply::json(&json!({"version": env!("CARGO_PKG_VERSION")}))
}
