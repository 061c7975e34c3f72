//! GET /api/v0/models: what LM Studio's clients ask of a model before they use OpenAI's interface.

use crate::app::App;
use crate::error::ApiError;
use crate::models::{ModelEntry, Served};
use crate::reply;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

/// All models.
pub(crate) async fn list(State(app): State<Arc<App>>) -> Response {
    let data: Vec<Value> = app.models.iter().map(|entry| one(entry, entry.name())).collect();
    reply::json(&json!({"object": "list", "data": data}))
}

/// One model; its id may have slashes.
pub(crate) async fn get(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response, ApiError> {
    Ok(reply::json(&one(app.models.entry(Some(&id))?, &id)))
}

fn one(entry: &ModelEntry, name: &str) -> Value {
    let of = entry.description();
    let served = entry.opened();
    let mut object = json!({
        "id": name,
        "object": "model",
        // One that is not loaded is known by its files alone, which do not say it.
        "type": if served.as_deref().is_some_and(|served| matches!(served, Served::Encoder(_))) { "embeddings" } else { "llm" },
        "publisher": name.split_once('/').map_or("", |(publisher, _)| publisher),
        "arch": of.architecture,
        "compatibility_type": of.container,
        "quantization": of.format,
        "state": if served.is_some() { "loaded" } else { "not-loaded" },
        "max_context_length": of.context,
        "capabilities": [],
    });
    let Some(served) = served else { return object };
    object["loaded_context_length"] = served.context().into();
    if of.context.is_none() {
        object["max_context_length"] = served.context().into();
    }
    if let Served::Generator(generator) = &*served
        && generator.template(true).is_ok_and(|template| template.family.calls.is_some())
    {
        object["capabilities"] = json!(["tool_use"]);
    }
    object
}
