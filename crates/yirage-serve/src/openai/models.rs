//! GET /v1/models and /v1/models/{id}.

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
    let data: Vec<Value> = app.models.iter().flat_map(|entry| of_entry(entry)).collect();
    reply::json(&json!({"object": "list", "data": data}))
}

/// A model under each of its names, and its adapters.
fn of_entry(entry: &ModelEntry) -> Vec<Value> {
    let adapters = entry.adapters();
    entry.names().iter().chain(&adapters).map(|name| one(entry, name)).collect()
}

/// One model; its id may have slashes.
pub(crate) async fn get(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let entry = app.models.entry(Some(&id))?;
    Ok(reply::json(&one(entry, &id)))
}

fn one(entry: &ModelEntry, name: &str) -> Value {
    let mut object = json!({
        "id": name,
        "object": "model",
        "created": entry.created(),
        "owned_by": "yirage",
        "root": entry.name(),
        "parent": entry.adapters().iter().any(|of| of == name).then(|| entry.name()),
        "permission": [],
        "status": {"value": "unloaded"},
    });
    let Some(served) = entry.opened() else { return object };
    object["status"] = json!({"value": "loaded"});
    object["max_model_len"] = served.context().into();
    object["meta"] = match &*served {
        Served::Generator(generator) => {
            let facts = generator.model().facts();
            json!({
                "architecture": facts.architecture,
                "n_vocab": facts.vocabulary,
                "n_ctx_train": facts.trained_context,
                "size": facts.bytes.weights,
            })
        }
        Served::Encoder(encoder) => {
            let facts = encoder.facts();
            json!({"architecture": facts.architecture, "n_vocab": facts.vocabulary, "size": facts.bytes.weights})
        }
    };
    object
}
