//! GET /api/version, /api/tags, /api/ps and POST /api/show.

use super::clock;
use super::options::untagged;
use crate::app::{App, now};
use crate::call::Posted;
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured, ignored};
use crate::models::{ModelEntry, ModelLease, Served};
use crate::reply::{self, with_ignored};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// The version of ollama whose interface this is. Clients (Copilot, Codex) look at it for what they may ask, and turn away
/// from what is older than they are; our own is at /version.
const SPOKEN: &str = "0.13.5";

/// GET /api/version.
pub(crate) async fn version() -> Response {
    reply::json(&json!({"version": SPOKEN}))
}

/// What ollama's clients list of a model.
fn one(entry: &ModelEntry) -> Value {
    let of = entry.description();
    json!({
        "name": entry.name(),
        "model": entry.name(),
        "modified_at": clock::written(entry.created()),
        "size": entry.bytes(),
        "digest": digest(entry),
        "details": {
            "parent_model": "", "format": of.container, "family": of.architecture, "families": [of.architecture],
            "parameter_size": rounded(of.parameters), "quantization_level": of.format,
        },
    })
}

/// What clients tell models apart by; the name does that here.
pub(super) fn digest(entry: &ModelEntry) -> String {
    Sha256::digest(entry.name()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number of parameters as ollama writes it: `494.03M`, `7.6B`.
fn rounded(parameters: u64) -> String {
    let (number, unit, digits) = match parameters {
        1_000_000_000.. => (parameters as f64 / 1e9, "B", 1),
        1_000_000.. => (parameters as f64 / 1e6, "M", 2),
        1_000.. => (parameters as f64 / 1e3, "K", 0),
        _ => (parameters as f64, "", 0),
    };
    let digits = if number.fract() == 0.0 { 0 } else { digits };
    format!("{number:.digits$}{unit}")
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
        object["size"] = served.bytes().into();
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
pub(crate) const SHOW: FieldTable = &[&[
    honoured("model", r#"{"type":"string"}"#),
    honoured("name", r#"{"type":"string"}"#),
    ignored("system", r#"{"type":"string"}"#),
    ignored("template", r#"{"type":"string"}"#),
    ignored("options", r#"{"type":["object","null"]}"#),
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
        let held = app.models.lease_named(model.as_deref())?;
        let mut object = one(&held.entry);
        let (mut capabilities, mut template) = (vec!["embedding"], String::new());
        if let Served::Generator(generator) = &*held.served {
            let family = generator.template(true).map(|template| template.family).ok();
            capabilities = vec!["completion"];
            capabilities.extend(family.is_some_and(|family| family.calls.is_some()).then_some("tools"));
            capabilities.extend(family.is_some_and(|family| family.thoughts.is_some()).then_some("thinking"));
            template = generator.template_source().unwrap_or_default().to_owned();
        }
        object["capabilities"] = json!(capabilities);
        object["template"] = template.into();
        object["parameters"] = "".into();
        object["modelfile"] = "".into();
        object["license"] = "".into();
        object["model_info"] = information(&held);
        Ok(with_ignored(reply::json(&object), &ignored))
    })
    .await
}

/// What a model is, under the names of GGUF's keys.
fn information(held: &ModelLease) -> Value {
    let of = held.entry.description();
    let (architecture, vocabulary) = match &*held.served {
        Served::Generator(generator) => {
            let facts = generator.model().facts();
            (&facts.architecture, facts.vocabulary)
        }
        Served::Encoder(encoder) => (&encoder.facts().architecture, encoder.facts().vocabulary),
    };
    let mut object = json!({
        "general.architecture": architecture,
        "general.basename": held.entry.name(),
        "general.parameter_count": of.parameters,
        // As long as it may be here: clients fit conversations into it.
        format!("{architecture}.context_length"): held.served.context(),
        format!("{architecture}.vocab_size"): vocabulary,
    });
    let known = [
        ("embedding_length", of.width),
        ("block_count", of.layers),
        ("original_context_length", of.context.filter(|made_for| *made_for != u64::from(held.served.context()))),
    ];
    for (key, value) in known {
        if let Some(value) = value {
            object[format!("{architecture}.{key}")] = value.into();
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn parameters_are_rounded_as_ollama_rounds_them() {
        for (parameters, text) in [
            (0, "0"),
            (999, "999"),
            (137_000, "137K"),
            (494_032_768, "494.03M"),
            (751_632_384, "751.63M"),
            (5_000_000, "5M"),
            (1_000_000_000, "1B"),
            (7_615_616_512, "7.6B"),
            (235_093_634_560, "235.1B"),
        ] {
            assert_eq!(rounded(parameters), text);
        }
    }
}
