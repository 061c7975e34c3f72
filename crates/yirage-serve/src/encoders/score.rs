//! POST /score: a score for each pair of texts, as vLLM has it.

use super::encode::score_pairs;
use crate::app::{App, now};
use crate::call::{Posted, RequestContext};
use crate::error::ApiError;
use crate::fields::{FieldSpec, Fields, honoured};
use crate::limits::MAX_INPUTS;
use crate::openai::hints::{USER, hints};
use crate::reply::{self, with_ignored};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

const TEXTS: &str = r#"{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}"#;

/// The fields of it.
pub(crate) const SCORE: &[&[FieldSpec]] = &[&[
    honoured("model", r#"{"type":"string"}"#),
    honoured("text_1", TEXTS),
    honoured("text_2", TEXTS),
    honoured("queries", TEXTS),
    honoured("documents", TEXTS),
    USER,
]];

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| answer(app, &call, &body)).await
}

fn answer(app: &App, call: &RequestContext, body: &[u8]) -> Result<Response, ApiError> {
    let mut fields = Fields::parse(body, SCORE)?;
    let model = fields.text("model")?;
    let held = app.models.lease(model.as_deref())?;
    let ScoreRequest { first, second, ignored } = read(fields)?;
    let pairs = pairs(&first, &second)?;
    let _open = app.live.enter(&call.id, held.entry.name());
    let (scores, tokens) = score_pairs(&held, &pairs, None)?;
    let one = |(index, score): (usize, f32)| json!({"index": index, "object": "score", "score": score});
    let data: Vec<Value> = scores.into_iter().enumerate().map(one).collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    let name = held.entry.name();
    let object =
        json!({"id": app.id("score"), "object": "list", "created": now(), "model": name, "data": data, "usage": usage});
    Ok(with_ignored(reply::json(&object), &ignored))
}

/// What a body asks of its model.
struct ScoreRequest {
    first: Vec<String>,
    second: Vec<String>,
    ignored: Vec<String>,
}

fn read(mut fields: Fields) -> Result<ScoreRequest, ApiError> {
    let mut either = |old: &str, new: &str| -> Result<Vec<String>, ApiError> {
        let texts = [fields.texts(old)?, fields.texts(new)?].concat();
        if texts.is_empty() || texts.len() > MAX_INPUTS {
            let what = format!("`{old}` has {} texts; 1 to {MAX_INPUTS} are taken", texts.len());
            return Err(ApiError::field(old, what));
        }
        Ok(texts)
    };
    let (first, second) = (either("text_1", "queries")?, either("text_2", "documents")?);
    let mut ignored = Vec::new();
    hints(&mut fields, &[USER], &mut ignored)?;
    fields.finish_into(&mut ignored)?;
    Ok(ScoreRequest { first, second, ignored })
}

/// Each first text with its second one; a single first one with all.
fn pairs<'a>(first: &'a [String], second: &'a [String]) -> Result<Vec<(&'a str, &'a str)>, ApiError> {
    match (first, second) {
        ([one], many) => Ok(many.iter().map(|text| (one.as_str(), text.as_str())).collect()),
        (a, b) if a.len() == b.len() => Ok(a.iter().zip(b).map(|(a, b)| (a.as_str(), b.as_str())).collect()),
        (a, b) => {
            let (a, b) = (a.len(), b.len());
            let what = format!("{a} and {b} texts make no pairs; send one first text, or as many of both");
            Err(ApiError::field("text_2", what))
        }
    }
}

/// What changes nothing in a body.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, SCORE)?;
    fields.text("model")?;
    let ScoreRequest { first, second, ignored } = read(fields)?;
    pairs(&first, &second)?;
    Ok(ignored)
}
