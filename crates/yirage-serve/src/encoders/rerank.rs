//! POST /v1/rerank: how well texts answer a query, the best first; the form of Jina's and Cohere's interfaces.

use super::encode::score_pairs;
use crate::app::App;
use crate::call::{Posted, RequestContext};
use crate::error::ApiError;
use crate::fields::{FieldSpec, Fields, honoured, wrong};
use crate::limits::MAX_INPUTS;
use crate::openai::hints::{USER, hints};
use crate::reply::{self, with_ignored};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

/// The fields of it.
pub(crate) const RERANK: &[&[FieldSpec]] = &[&[
    honoured("model", r#"{"type":"string"}"#),
    honoured("query", r#"{"type":"string"}"#),
    honoured("instruction", r#"{"type":["string","null"]}"#),
    honoured("documents", r#"{"type":"array","minItems":1}"#),
    honoured("top_n", r#"{"type":["integer","null"],"minimum":1}"#),
    honoured("return_documents", r#"{"type":["boolean","null"]}"#),
    USER,
]];

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| answer(app, &call, &body)).await
}

fn answer(app: &App, call: &RequestContext, body: &[u8]) -> Result<Response, ApiError> {
    let mut fields = Fields::parse(body, RERANK)?;
    let model = fields.text("model")?;
    let held = app.models.lease(model.as_deref())?;
    let RerankRequest { query, instruction, texts, top, shown, ignored } = read(fields)?;
    let _open = app.live.enter(&call.id, held.entry.name());
    let pairs: Vec<(&str, &str)> = texts.iter().map(|text| (query.as_str(), text.as_str())).collect();
    let (scores, tokens) = score_pairs(&held, &pairs, instruction.as_deref())?;
    let mut order: Vec<(usize, f32)> = scores.into_iter().enumerate().collect();
    // Equal scores stay in the order of the texts.
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let one = |(index, score): (usize, f32)| {
        let mut result = json!({"index": index, "relevance_score": score});
        if let Some(text) = texts.get(index).filter(|_| shown) {
            result["document"] = json!({"text": text});
        }
        result
    };
    let results: Vec<Value> = order.into_iter().take(top).map(one).collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    let object = json!({
        "id": app.id("rerank"), "object": "list", "model": held.entry.name(), "usage": usage, "results": results,
    });
    Ok(with_ignored(reply::json(&object), &ignored))
}

/// What a body asks of its model.
struct RerankRequest {
    query: String,
    instruction: Option<String>,
    texts: Vec<String>,
    top: usize,
    shown: bool,
    ignored: Vec<String>,
}

fn read(mut fields: Fields) -> Result<RerankRequest, ApiError> {
    let query = fields.text("query")?;
    let query = fields.need("query", query)?;
    let instruction = fields.text("instruction")?;
    let list = fields.list("documents")?;
    let texts = documents(&fields.need("documents", list)?)?;
    let top = fields.whole::<usize>("top_n", "a whole number from 1")?;
    if top == Some(0) {
        return Err(ApiError::field("top_n", "`top_n` is 0; it must be 1 or above"));
    }
    let top = top.unwrap_or(usize::MAX);
    let shown = fields.switch("return_documents")?.unwrap_or(true);
    let mut ignored = Vec::new();
    hints(&mut fields, &[USER], &mut ignored)?;
    fields.finish_into(&mut ignored)?;
    Ok(RerankRequest { query, instruction, texts, top, shown, ignored })
}

/// What changes nothing in a body.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, RERANK)?;
    fields.text("model")?;
    Ok(read(fields)?.ignored)
}

/// Texts, or objects with a `text`.
fn documents(list: &[Value]) -> Result<Vec<String>, ApiError> {
    if list.is_empty() || list.len() > MAX_INPUTS {
        let what = format!("`documents` has {} entries; 1 to {MAX_INPUTS} are taken", list.len());
        return Err(ApiError::field("documents", what));
    }
    let one = |(at, value): (usize, &Value)| {
        let text = value.as_str().or_else(|| value.get("text").and_then(Value::as_str));
        text.map(str::to_owned).ok_or_else(|| wrong(&format!("documents[{at}]"), "a text", value))
    };
    list.iter().enumerate().map(one).collect()
}
