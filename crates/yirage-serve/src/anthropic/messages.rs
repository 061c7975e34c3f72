//! POST /v1/messages and /v1/messages/count_tokens.

use super::answer::{stream, whole};
use super::begun::Message;
use super::history;
use crate::app::App;
use crate::call::{Call, Posted};
use crate::error::ApiError;
use crate::fields::{Field, Fields, Table, honoured, ignored, refused};
use crate::generate::{Asked, Talk, converse};
use crate::reply::{self, with_ignored};
use crate::sse::{self, Framing};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

const SHARED: &[Field] = &[
    honoured("model", r#"{"type":"string"}"#),
    honoured("messages", r#"{"type":"array","minItems":1,"items":{"type":"object","required":["role","content"]}}"#),
    honoured("system", r#"{"anyOf":[{"type":"string"},{"type":"array"}]}"#),
    honoured("tools", r#"{"type":"array","items":{"type":"object"}}"#),
    honoured("tool_choice", r#"{"type":"object","required":["type"]}"#),
    honoured("thinking", r#"{"type":"object","required":["type"]}"#),
    ignored("metadata", r#"{"type":"object"}"#),
    ignored("service_tier", r#"{"type":"string"}"#),
    ignored("cache_control", r#"{"type":"object"}"#),
    refused("container", "nothing runs beside the model", &[]),
    refused("mcp_servers", "this server opens no connection", &["[]"]),
    refused("context_management", "a conversation is never shortened", &[]),
];

const OWN: &[Field] = &[
    honoured("max_tokens", r#"{"type":"integer","minimum":1}"#),
    honoured("temperature", r#"{"type":"number","minimum":0,"maximum":1}"#),
    honoured("top_p", r#"{"type":"number","exclusiveMinimum":0,"maximum":1}"#),
    honoured("top_k", r#"{"type":"integer","minimum":0}"#),
    honoured("stop_sequences", r#"{"type":"array","items":{"type":"string"}}"#),
    honoured("stream", r#"{"type":"boolean"}"#),
];

/// The fields of /v1/messages.
pub(crate) const MESSAGES: Table = &[SHARED, OWN];

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    let mut message = app.work(move |app| begin(app, &call, &body)).await?;
    message.conversing.turns.first().await?;
    let ignored = std::mem::take(&mut message.ignored);
    let response = match message.stream {
        true => sse::stream(Framing::Events, |writer| stream(message, writer)),
        false => whole(message).await?,
    };
    Ok(with_ignored(response, &ignored))
}

fn begin(app: &App, call: &Call, body: &[u8]) -> Result<Message, ApiError> {
    let mut fields = Fields::parse(body, MESSAGES)?;
    let model = fields.text("model")?;
    let held = app.models.hold(model.as_deref())?;
    let generator = held.generator()?;
    let mut asked = Asked::suggested(generator.model().generation(), app.unique());
    let most = fields.whole::<u32>("max_tokens", "a whole number from 1")?;
    asked.max_tokens = Some(fields.need("max_tokens", most.filter(|most| *most > 0))?);
    let sampling = &mut asked.sampling;
    for (name, place) in [("temperature", &mut sampling.temperature), ("top_p", &mut sampling.top_p)] {
        if let Some(value) = fields.number(name)? {
            *place = value;
        }
    }
    if let Some(k) = fields.whole("top_k", "a whole number")? {
        sampling.top_k = k;
    }
    asked.stops = fields.texts("stop_sequences")?;
    let stream = fields.switch("stream")?.unwrap_or(false);
    let (talk, more) = talk(&mut fields)?;
    let ignored = [fields.finish()?, more].concat();
    let conversing = converse(app, call, &held, &asked, &talk)?;
    Ok(Message { conversing, id: app.id("msg"), stream, ignored })
}

/// The conversation, and which parts of fields change nothing.
fn talk(fields: &mut Fields) -> Result<(Talk, Vec<String>), ApiError> {
    let list = fields.list("messages")?;
    let mut messages = history::messages(&fields.need("messages", list)?)?;
    if let Some(system) = fields.take("system") {
        messages.insert(0, history::system(&system)?);
    }
    let tools = fields.list("tools")?.unwrap_or_default();
    let choice = fields.take("tool_choice");
    let mut ignored = Vec::new();
    let thinking = match fields.object("thinking")? {
        None => None,
        Some(map) => {
            // A model ends its thoughts by itself.
            if map.contains_key("budget_tokens") {
                ignored.push("thinking.budget_tokens".to_owned());
            }
            match map.get("type").and_then(Value::as_str) {
                Some("enabled" | "adaptive") => Some(true),
                Some("disabled") => Some(false),
                _ => return Err(ApiError::field("thinking.type", "`thinking.type`: expected enabled or disabled")),
            }
        }
    };
    Ok((Talk { tools: history::tools(&tools, choice.as_ref())?, thinking, ..Talk::new(messages) }, ignored))
}

/// The endpoint that counts.
pub(crate) async fn count(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let mut fields = Fields::parse(&body, MESSAGES)?;
        let model = fields.text("model")?;
        let held = app.models.hold(model.as_deref())?;
        let (talk, more) = talk(&mut fields)?;
        let ignored = [fields.finish_part()?, more].concat();
        let (_, ids) = talk.render(held.generator()?)?;
        Ok(with_ignored(reply::json(&json!({"input_tokens": ids.len()})), &ignored))
    })
    .await
}
