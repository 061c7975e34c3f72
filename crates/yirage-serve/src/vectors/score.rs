//! POST /score: a score for each pair of texts, as vLLM has it.

use super::encode::scores;
use crate::app::{App, now};
use crate::call::{Call, Posted};
use crate::error::ApiError;
use crate::fields::{Field, Fields, honoured, ignored};
use crate::limits::MAX_INPUTS;
use crate::reply::{self, with_ignored};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

const TEXTS: &str = r#"{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":1}]}"#;

/// The fields of it.
pub(crate) const SCORE: &[&[Field]] = &[&[
    honoured("model", r#"{"type":"string"}"#),
    honoured("text_1", TEXTS),
    honoured("text_2", TEXTS),
    honoured("queries", TEXTS),
    honoured("documents", TEXTS),
    ignored("user", r#"{"type":["string","null"]}"#),
]];

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| answer(app, &call, &body)).await
}

fn answer(app: &App, call: &Call, body: &[u8]) -> Result<Response, ApiError> {
    let mut fields = Fields::parse(body, SCORE)?;
    let model = fields.text("model")?;
    let held = app.models.hold(model.as_deref())?;
    let mut either = |old: &str, new: &str| -> Result<Vec<String>, ApiError> {
        let texts = [fields.texts(old)?, fields.texts(new)?].concat();
        if texts.is_empty() || texts.len() > MAX_INPUTS {
            return Err(ApiError::field(
                old,
                format!("`{old}` has {} texts; 1 to {MAX_INPUTS} are taken", texts.len()),
            ));
        }
        Ok(texts)
    };
    let (first, second) = (either("text_1", "queries")?, either("text_2", "documents")?);
    let ignored = fields.finish()?;
    let pairs: Vec<(&str, &str)> = match (first.as_slice(), second.as_slice()) {
        ([one], many) => many.iter().map(|text| (one.as_str(), text.as_str())).collect(),
        (a, b) if a.len() == b.len() => a.iter().zip(b).map(|(a, b)| (a.as_str(), b.as_str())).collect(),
        (a, b) => {
            let what =
                format!("{} and {} texts make no pairs; send one first text, or as many of both", a.len(), b.len());
            return Err(ApiError::field("text_2", what));
        }
    };
    let _open = app.live.enter(&call.id, held.entry.name());
    let (scores, tokens) = scores(&held, &pairs)?;
    let one = |(index, score): (usize, f32)| json!({"index": index, "object": "score", "score": score});
    let data: Vec<Value> = scores.into_iter().enumerate().map(one).collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    let name = held.entry.name();
    let object =
        json!({"id": app.id("score"), "object": "list", "created": now(), "model": name, "data": data, "usage": usage});
    Ok(with_ignored(reply::json(&object), &ignored))
}
