//! /lora-adapters as llama.cpp has it, and loading and unloading as vLLM has them.

use super::props::model_of_query;
use crate::app::App;
use crate::call::Posted;
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured, ignored};
use crate::models::{ModelLease, adapter_scales};
use crate::reply;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

const NAME: &str = r#"{"type":"string","minLength":1}"#;

/// The fields of /v1/load_lora_adapter.
pub(crate) const LOAD: FieldTable = &[&[
    honoured("lora_name", NAME),
    honoured("lora_path", NAME),
    honoured("model", r#"{"type":["string","null"]}"#),
    ignored("load_inplace", r#"{"type":"boolean"}"#),
]];

/// The fields of /v1/unload_lora_adapter.
pub(crate) const UNLOAD: FieldTable = &[&[
    honoured("lora_name", NAME),
    honoured("model", r#"{"type":["string","null"]}"#),
    ignored("lora_int_id", r#"{"type":"integer"}"#),
]];

/// GET /lora-adapters.
pub(crate) async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Result<Response, ApiError> {
    let name = model_of_query(&app, query.as_deref());
    app.work(move |app| {
        let held = app.models.lease_named(name.as_deref())?;
        let adapters = held.generator()?.adapters()?;
        let one = |(id, adapter): (usize, &yirage_engine::EngineAdapter)| {
            json!({"id": id, "path": adapter.name, "scale": adapter.scale})
        };
        Ok(reply::json(&adapters.iter().enumerate().map(one).collect::<Value>()))
    })
    .await
}

fn read_scales(body: &[u8]) -> Result<Vec<(usize, f32)>, ApiError> {
    let list = serde_json::from_slice::<Vec<Value>>(body);
    let list = list.map_err(|e| ApiError::invalid(format!("the body has to be a list of id and scale: {e}")))?;
    adapter_scales(list, "")
}

/// What changes nothing in a list of scales: nothing.
///
/// # Errors
/// What is no request, whatever the models.
pub(crate) fn check_scales(body: &[u8]) -> Result<Vec<String>, ApiError> {
    read_scales(body).map(|_| Vec::new())
}

/// POST /lora-adapters.
pub(crate) async fn set(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    Posted { body, .. }: Posted,
) -> Result<Response, ApiError> {
    let name = model_of_query(&app, query.as_deref());
    app.work(move |app| {
        let scales = read_scales(&body)?;
        app.models.lease_named(name.as_deref())?.generator()?.set_adapter_scales(&scales)?;
        Ok(reply::json(&json!({"success": true})))
    })
    .await
}

/// What a body names: adapter, path, model.
struct NamedAdapter {
    name: String,
    path: Option<String>,
    model: Option<String>,
    ignored: Vec<String>,
}

fn read_named(body: &[u8], table: FieldTable, with_path: bool) -> Result<NamedAdapter, ApiError> {
    let mut fields = Fields::parse(body, table)?;
    let (name, model) = (fields.text("lora_name")?, fields.text("model")?);
    let name = fields.need("lora_name", name.filter(|name| !name.is_empty()))?;
    let path = match with_path {
        true => {
            let path = fields.text("lora_path")?;
            Some(fields.need("lora_path", path)?)
        }
        false => None,
    };
    Ok(NamedAdapter { name, path, model, ignored: fields.finish()? })
}

/// What changes nothing in a body that loads an adapter.
///
/// # Errors
/// What is no request, whatever the models.
pub(crate) fn check_load(body: &[u8]) -> Result<Vec<String>, ApiError> {
    read_named(body, LOAD, true).map(|named| named.ignored)
}

/// What changes nothing in a body that unloads an adapter.
///
/// # Errors
/// What is no request, whatever the models.
pub(crate) fn check_unload(body: &[u8]) -> Result<Vec<String>, ApiError> {
    read_named(body, UNLOAD, false).map(|named| named.ignored)
}

fn leased(app: &App, named: &NamedAdapter) -> Result<ModelLease, ApiError> {
    let model = named.model.clone().or_else(|| model_of_query(app, None));
    app.models.lease_named(model.as_deref())
}

/// POST /v1/load_lora_adapter.
pub(crate) async fn load(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let named = read_named(&body, LOAD, true)?;
        let held = leased(app, &named)?;
        if app.models.entry(Some(&named.name)).is_ok_and(|of| of.names().contains(&named.name)) {
            return Err(ApiError::field("lora_name", format!("{:?} is the name of a model", named.name)));
        }
        held.generator()?.load_adapter(&named.name, named.path.as_deref().unwrap_or_default())?;
        held.entry.set_adapters(&held.served)?;
        Ok(reply::json(&json!({"success": true})))
    })
    .await
}

/// POST /v1/unload_lora_adapter.
pub(crate) async fn unload(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let named = read_named(&body, UNLOAD, false)?;
        let held = leased(app, &named)?;
        held.generator()?.unload_adapter(&named.name)?;
        held.entry.set_adapters(&held.served)?;
        Ok(reply::json(&json!({"success": true})))
    })
    .await
}
