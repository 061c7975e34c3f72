//! POST /prefill: a prompt is computed for another server, which goes on from it: prefill and decode on different machines.
//!
//! ```text
//! client ─▶ decoding server: is the prompt long, and not in its cache? ─▶ POST /prefill ─▶ prefilling server computes it
//!                 │ puts it into its cache, checks its sum ◀─ what a slot's file has, as bytes ◀─ │
//! client ◀─ answer by its own tokens
//! ```
//! What came over is taken only from the same model, device and precision, so the answer has the bytes of a server alone.
//! Whatever goes wrong, the decoding server computes the prompt itself, and counts and says so.
//!
//! Unknown here: which server is free, and how many there are: an address may be that of `yirage route`.

use crate::app::App;
use crate::call::Posted;
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured};
use crate::generate::prefilled;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use std::sync::Arc;

/// The fields.
pub(crate) const PREFILL: FieldTable = &[&[
    honoured("model", r#"{"type":["string","null"]}"#),
    honoured("tokens", r#"{"type":"array","items":{"type":"integer"}}"#),
    honoured("cache_salt", r#"{"type":["string","null"]}"#),
]];

/// A prompt that is asked for.
struct AskedPrompt {
    model: Option<String>,
    tokens: Vec<u32>,
    cache_salt: String,
}

fn read(body: &[u8]) -> Result<AskedPrompt, ApiError> {
    let mut fields = Fields::parse(body, PREFILL)?;
    let (model, tokens) = (fields.text("model")?, fields.ids("tokens")?);
    let tokens = fields.need("tokens", tokens)?;
    let cache_salt = fields.text("cache_salt")?.unwrap_or_default();
    fields.finish()?;
    Ok(AskedPrompt { model, tokens, cache_salt })
}

/// What changes nothing in a body: nothing.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    read(body).map(|_| Vec::new())
}

/// POST /prefill.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    let asked = read(&body)?;
    let (name, tokens, salt) = (asked.model, asked.tokens, asked.cache_salt);
    let (mut streams, salt) = {
        let (call, tokens, name) = (call.clone(), tokens.clone(), name.clone());
        app.work(move |app| {
            let held = app.models.lease(name.as_deref())?;
            prefilled(app, &call, &held, tokens, &salt)
        })
        .await?
    };
    // Its one token is of no use: the prompt is in the cache then.
    while streams.next().await?.is_some() {}
    let held = streams.lease().clone();
    let bytes = app
        .work(move |_| {
            let generator = held.generator()?;
            let fingerprint = generator.fingerprint().ok_or_else(|| {
                ApiError::ours("a model of this server has no fingerprint, so nobody could take what it computes")
            })?;
            Ok(generator.model().prefix_bytes(fingerprint, tokens, salt)?)
        })
        .await?;
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Ok(response)
}
