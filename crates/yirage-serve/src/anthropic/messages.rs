//! POST /v1/messages and /v1/messages/count_tokens.

use super::active::ActiveMessage;
use super::answer::{stream, whole};
use super::history;
use crate::app::App;
use crate::call::{Posted, RequestContext};
use crate::error::ApiError;
use crate::fields::{FieldSpec, FieldTable, Fields, honoured, ignored};
use crate::generate::{GenerationParams, Talk, converse, thinking};
use crate::grammar::Grammar;
use crate::openai;
use crate::openai::hints::hints;
use crate::reply::{self, with_ignored};
use crate::sse::{self, Framing};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

const SHARED: &[FieldSpec] = &[
    honoured("model", r#"{"type":"string"}"#),
    honoured("messages", r#"{"type":"array","minItems":1,"items":{"type":"object","required":["role","content"]}}"#),
    honoured("system", r#"{"anyOf":[{"type":"string"},{"type":"array"}]}"#),
    honoured("tools", r#"{"type":"array","items":{"type":"object"}}"#),
    honoured("tool_choice", r#"{"type":"object","required":["type"]}"#),
    honoured("thinking", r#"{"type":"object","required":["type"]}"#),
    honoured("output_config", r#"{"type":["object","null"]}"#),
    honoured("output_format", r#"{"type":["object","null"]}"#),
    // Nothing runs beside the model: what would is left out.
    ignored("container", "{}"),
];

/// What changes nothing here, and is looked at as its makers' server does.
const HINTS: &[FieldSpec] = &[
    ignored("metadata", r#"{"type":["object","null"]}"#),
    ignored("service_tier", r#"{"enum":["auto","standard_only",null]}"#),
    ignored("cache_control", r#"{"type":["object","null"]}"#),
    // Nothing is connected to: tools of other servers are left out.
    ignored("mcp_servers", r#"{"type":["array","null"]}"#),
    // A conversation is never shortened: all of it is read.
    ignored("context_management", r#"{"type":["object","null"]}"#),
    ignored("inference_geo", r#"{"type":["string","null"]}"#),
    ignored("betas", r#"{"type":["array","null"]}"#),
];

const OWN: &[FieldSpec] = &[
    honoured("max_tokens", r#"{"type":"integer","minimum":0}"#),
    honoured("temperature", r#"{"type":"number","minimum":0,"maximum":100}"#),
    honoured("top_p", r#"{"type":"number","exclusiveMinimum":0,"maximum":1}"#),
    honoured("top_k", r#"{"type":"integer","minimum":0}"#),
    honoured("stop_sequences", r#"{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}"#),
    honoured("stream", r#"{"type":"boolean"}"#),
];

/// The fields of /v1/messages.
pub(crate) const MESSAGES: FieldTable = &[SHARED, OWN, HINTS];

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    let mut message = app.work(move |app| begin(app, &call, &body)).await?;
    message.conversing.turns.first().await?;
    let (ignored, told) = (std::mem::take(&mut message.ignored), message.conversing.turns.notices());
    let response = match message.stream {
        true => sse::stream(Framing::Named, |writer| stream(message, writer)),
        false => whole(message).await?,
    };
    Ok(told.on(with_ignored(response, &ignored)))
}

fn begin(app: &App, call: &RequestContext, body: &[u8]) -> Result<ActiveMessage, ApiError> {
    let mut fields = Fields::parse(body, MESSAGES)?;
    let model = fields.text("model")?;
    let held = app.models.lease(model.as_deref())?;
    let generator = held.generator()?;
    let suggested = GenerationParams::suggested(generator.model().generation(), app.unique());
    let MessagesRequest { params: asked, talk, stream, mut ignored } = read(fields, suggested)?;
    let conversing = converse(app, call, &held, &asked, &talk)?;
    ignored.extend_from_slice(&conversing.ignored);
    Ok(ActiveMessage { conversing, id: app.id("msg"), stream, ignored })
}

/// What a body asks of its model.
struct MessagesRequest {
    params: GenerationParams,
    talk: Talk,
    stream: bool,
    ignored: Vec<String>,
}

/// The fields of a body behind its model, over what that suggests.
fn read(mut fields: Fields, suggested: GenerationParams) -> Result<MessagesRequest, ApiError> {
    let mut asked = suggested;
    // None is asked for to have the prompt cached.
    let most = fields.whole::<u32>("max_tokens", "a whole number from 0")?;
    asked.max_tokens = Some(fields.need("max_tokens", most)?);
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
    let talk = talk(&mut fields)?;
    let mut ignored = Vec::new();
    hints(&mut fields, HINTS, &mut ignored)?;
    fields.finish_answer(&mut ignored)?;
    Ok(MessagesRequest { params: asked, talk, stream, ignored })
}

/// What changes nothing in a body.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, MESSAGES)?;
    fields.text("model")?;
    let MessagesRequest { talk, ignored, .. } = read(fields, GenerationParams::unsuggested())?;
    Ok([ignored, talk.ignored].concat())
}

/// What changes nothing in a body whose tokens are counted.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check_count(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, MESSAGES)?;
    fields.text("model")?;
    let talk = talk(&mut fields)?;
    Ok([fields.finish_part()?, talk.ignored].concat())
}

const OUTPUT: FieldTable = &[&[honoured("effort", "{}"), honoured("format", "{}"), ignored("task_budget", "{}")]];

const FORMAT: FieldTable = &[&[honoured("type", "{}"), honoured("schema", "{}"), ignored("name", "{}")]];

/// How an answer is to be made: how hard to think, and its form, which an older word asks for as well.
fn output(fields: &mut Fields, ignored: &mut Vec<String>) -> Result<(Option<String>, Grammar), ApiError> {
    let (mut effort, mut grammar) = (None, Grammar::free());
    let older = fields.fields("output_format", FORMAT)?;
    let config = fields.fields("output_config", OUTPUT)?;
    let mut newer = None;
    if let Some(mut config) = config {
        effort = openai::effort::effort(&mut config, "effort")?;
        newer = config.fields("format", FORMAT)?;
        config.finish_into(ignored)?;
    }
    if let (Some(newer), Some(older)) = (&newer, &older) {
        let what = format!("`{}` and `{}` exclude each other", newer.place(), older.place());
        return Err(ApiError::field(newer.place(), what));
    }
    if let Some(mut format) = newer.or(older) {
        if format.text("type")?.as_deref() != Some("json_schema") {
            return Err(format.error("type", "expected json_schema"));
        }
        let (place, schema) = (format.at("schema"), format.take("schema"));
        grammar = Grammar::of_schema(&place, format.need("schema", schema)?)?;
        format.finish_into(ignored)?;
    }
    Ok((effort, grammar))
}

/// A last message that is gone on from may not end in white space: its end would be half of a token.
fn check_end(messages: &[Value]) -> Result<(), ApiError> {
    let last = messages.last().filter(|last| last["role"] == "assistant");
    if last.and_then(|last| last["content"].as_str()).is_some_and(|text| text.ends_with(char::is_whitespace)) {
        let what = "messages: final assistant content cannot end with trailing whitespace; leave it out";
        return Err(ApiError::field("messages", what));
    }
    Ok(())
}

/// The conversation of a body.
fn talk(fields: &mut Fields) -> Result<Talk, ApiError> {
    let mut ignored = Vec::new();
    let list = fields.list("messages")?;
    let mut messages = history::messages(fields.need("messages", list)?, &mut ignored)?;
    check_end(&messages)?;
    if let Some(system) = fields.take("system") {
        messages.insert(0, history::system(system, &mut ignored)?);
    }
    let tools = fields.list("tools")?.unwrap_or_default();
    let tools = history::tools(tools, fields.take("tool_choice"), &mut ignored)?;
    let (thinking, budget) = thinking(fields, &mut ignored)?;
    let (reasoning_effort, grammar) = output(fields, &mut ignored)?;
    Ok(Talk { tools, thinking, budget, reasoning_effort, grammar, ignored, ..Talk::new(messages) })
}

/// The endpoint that counts.
pub(crate) async fn count(State(app): State<Arc<App>>, Posted { body, .. }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let mut fields = Fields::parse(&body, MESSAGES)?;
        let model = fields.text("model")?;
        let held = app.models.lease(model.as_deref())?;
        let talk = talk(&mut fields)?;
        let rendered = talk.render(held.generator()?)?;
        let ignored = [fields.finish_part()?, talk.ignored, rendered.ignored].concat();
        Ok(with_ignored(reply::json(&json!({"input_tokens": rendered.ids.len()})), &ignored))
    })
    .await
}
