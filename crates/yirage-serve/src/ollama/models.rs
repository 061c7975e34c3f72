//! GET /api/version, /api/tags, /api/ps and POST /api/show.

use super::asked::untagged;
use super::clock;
use crate::app::{App, now};
use crate::call::Posted;
use crate::error::ApiError;
use crate::fields::{Fields, Table, honoured, ignored};
use crate::models::{ModelEntry, Served};
use crate::reply::{self, with_ignored};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// GET /api/version.
pub(crate) async fn version() -> Response {
    reply::json(&json!({"version": env!("CARGO_PKG_VERSION")}))
}

fn one(entry: &ModelEntry) -> Value {
    let served = entry.opened();
    let (family, format) = match served.as_deref() {
        Some(Served::Generator(generator)) => (generator.model().facts().architecture.clone(), "yirage"),
        Some(Served::Encoder(encoder)) => (encoder.facts().architecture.clone(), "yirage"),
        None => (String::new(), "yirage"),
    };
    // Clients want a digest to tell models apart; a name does that here.
    let digest: String = Sha256::digest(entry.name()).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "name": entry.name(),
        "model": entry.name(),
        "modified_at": clock::written(entry.created()),
        "size": served.as_deref().map_or(0, Served::bytes),
        "digest": digest,
        "details": {
            "parent_model": "", "format": format, "family": family, "families": [family],
            "parameter_size": "", "quantization_level": "",
        },
    })
}

/// GET /api/tags: all models.
pub(crate) async fn tags(State(app): State<Arc<App>>) -> Response {
    let models: Vec<Value> = app.models.iter().map(|entry| one(entry)).collect();
    reply::json(&json!({"models": models}))
}

/// GET /api/ps: those that are loaded.
pub(crate) async fn running(State(app): State<Arc<App>>) -> Response {
    let loaded = app.models.iter().filter_map(|entry| {
        let served = entry.opened()?;
        let mut object = one(entry);
        object["size_vram"] = 0.into();
        object["context_length"] = served.context().into();
        // One that stays until another one needs the memory has no end that is known.
        let at = |stays: Duration| clock::written(now().saturating_add(stays.as_secs()));
        let ends = entry.stays(app.options.idle_unload).map_or("9999-12-31T23:59:59Z".to_owned(), at);
        object["expires_at"] = ends.into();
        Some(object)
    });
    reply::json(&json!({"models": loaded.collect::<Vec<Value>>()}))
}

/// The fields of /api/show.
pub(crate) const SHOW: Table = &[&[
    honoured("model", r#"{"type":"string"}"#),
    honoured("name", r#"{"type":"string"}"#),
    ignored("verbose", r#"{"type":"boolean"}"#),
]];

/// The model that a body names, and what changes nothing in it.
fn read_show(body: &[u8]) -> Result<(Option<String>, Vec<String>), ApiError> {
    let mut fields = Fields::parse(body, SHOW)?;
    let old = fields.text("name")?;
    let model = fields.text("model")?.or(old);
    Ok((model, fields.finish()?))
}

/// What changes nothing in a body of /api/show.
///
/// # Errors
/// What is no request, whatever the models.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    read_show(body).map(|(_, ignored)| ignored)
}

/// POST /api/show.
pub(crate) async fn show(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let (model, ignored) = read_show(&body)?;
        let model = untagged(app, model);
        let held = app.models.hold_named(model.as_deref())?;
        let mut object = one(&held.entry);
        let (mut capabilities, mut template) = (vec!["embedding"], String::new());
        if let Served::Generator(generator) = &*held.served {
            let family = generator.template(true).map(|template| template.family).ok();
            capabilities = vec!["completion"];
            capabilities.extend(family.is_some_and(|family| family.calls.is_some()).then_some("tools"));
            capabilities.extend(family.is_some_and(|family| family.thinks).then_some("thinking"));
            template = generator.template_source().unwrap_or_default().to_owned();
        }
        let architecture = object["details"]["family"].as_str().unwrap_or_default().to_owned();
        object["capabilities"] = json!(capabilities);
        object["template"] = template.into();
        object["parameters"] = "".into();
        object["modelfile"] = "".into();
        object["license"] = "".into();
        object["model_info"] = json!({
            "general.architecture": architecture,
            format!("{architecture}.context_length"): held.served.context(),
        });
        Ok(with_ignored(reply::json(&object), &ignored))
    })
    .await
}
