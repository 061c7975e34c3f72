//! POST /v1/responses and /v1/responses/input_tokens.

use super::active::ActiveResponse;
use super::answer::{stream, whole};
use super::background::later;
use super::items;
use crate::app::{App, now};
use crate::call::{Posted, RequestContext};
use crate::error::ApiError;
use crate::fields::{FieldSpec, FieldTable, Fields, honoured, ignored, refused, wrong};
use crate::generate::{GenerationParams, Talk, converse};
use crate::grammar::Grammar;
use crate::openai::chat::{Reasoning, reasoning, top_logprobs};
use crate::openai::hints::{SERVICE_TIER, USER, hints};
use crate::reply::{self, with_ignored};
use crate::sse::{self, Framing};
use crate::tools::{Tool, ToolUse};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

const OWN: &[FieldSpec] = &[
    honoured("model", r#"{"type":"string"}"#),
    honoured("input", r#"{"anyOf":[{"type":"string"},{"type":"array","minItems":1}]}"#),
    honoured("instructions", r#"{"type":["string","null"]}"#),
    honoured("tools", r#"{"type":["array","null"],"items":{"type":"object"}}"#),
    honoured("tool_choice", r#"{"anyOf":[{"type":["string","null"]},{"type":"object"}]}"#),
    honoured("parallel_tool_calls", r#"{"type":["boolean","null"]}"#),
    honoured("text", r#"{"type":["object","null"]}"#),
    honoured("reasoning", r#"{"type":["object","null"]}"#),
    honoured("max_output_tokens", r#"{"type":["integer","null"],"minimum":-1}"#),
    honoured("temperature", r#"{"type":["number","null"],"minimum":0,"maximum":100}"#),
    honoured("top_p", r#"{"type":["number","null"],"exclusiveMinimum":0,"maximum":1}"#),
    honoured("stream", r#"{"type":["boolean","null"]}"#),
    honoured("background", r#"{"type":["boolean","null"]}"#),
    honoured("store", r#"{"type":["boolean","null"]}"#),
    honoured("previous_response_id", r#"{"type":["string","null"]}"#),
    honoured("metadata", r#"{"type":["object","null"]}"#),
    honoured("include", r#"{"type":["array","null"],"items":{"type":"string"}}"#),
    honoured("top_logprobs", r#"{"type":["integer","null"],"minimum":0,"maximum":20}"#),
    refused("conversation", "use `previous_response_id`", &[]),
    refused("prompt", "there are no stored prompts", &[]),
];

/// What changes nothing here, and is looked at as its makers' server does.
const HINTS: &[FieldSpec] = &[
    USER,
    ignored("safety_identifier", r#"{"type":["string","null"]}"#),
    ignored("prompt_cache_key", r#"{"type":["string","null"]}"#),
    ignored("prompt_cache_retention", r#"{"type":["string","null"]}"#),
    SERVICE_TIER,
    ignored("stream_options", r#"{"type":["object","null"]}"#),
    // What is too long is refused, whatever is asked for.
    ignored("truncation", r#"{"enum":["auto","disabled",null]}"#),
    // Tools that this server runs: none.
    ignored("max_tool_calls", r#"{"type":["integer","null"]}"#),
    ignored("client_metadata", r#"{"type":["object","null"]}"#),
];

/// The fields of it.
pub(crate) const RESPONSES: FieldTable = &[OWN, HINTS];

const TEXT: FieldTable = &[&[honoured("format", "{}"), ignored("verbosity", "{}")]];

/// Finds what was kept of earlier requests.
trait KeptResponses {
    /// What was said up to a response's end.
    fn messages(&self, id: &str) -> Result<Vec<Value>, ApiError>;

    /// An item of a response, or of what it was an answer to.
    fn item(&self, id: &str) -> Result<Value, ApiError>;
}

/// Where a body is only read, whatever it names was said nothing in.
struct NothingKept;

impl KeptResponses for NothingKept {
    fn messages(&self, _: &str) -> Result<Vec<Value>, ApiError> {
        Ok(Vec::new())
    }

    fn item(&self, _: &str) -> Result<Value, ApiError> {
        Ok(json!({"type": "reasoning", "summary": []}))
    }
}

/// What is kept for a caller.
struct OfCaller<'a> {
    app: &'a App,
    call: &'a RequestContext,
}

impl KeptResponses for OfCaller<'_> {
    fn messages(&self, id: &str) -> Result<Vec<Value>, ApiError> {
        let kept = self.app.stored.get(id, &self.call.caller.name).ok_or_else(|| {
            let what = format!("there is no response `{id}`; it may have been too old to be kept");
            ApiError { param: Some("previous_response_id".into()), ..ApiError::not_found(what) }
        })?;
        kept.messages.clone().ok_or_else(|| {
            let what = format!("the response `{id}` has no answer that could be gone on from");
            ApiError::field("previous_response_id", what)
        })
    }

    fn item(&self, id: &str) -> Result<Value, ApiError> {
        self.app.stored.item(id, &self.call.caller.name).ok_or_else(|| {
            let what =
                format!("there is no item `{id}`; its response may have been too old to be kept: send the item whole");
            ApiError { param: Some("input".into()), ..ApiError::not_found(what) }
        })
    }
}

/// What a request says.
struct ResponseInput {
    talk: Talk,
    /// The conversation without instructions.
    messages: Vec<Value>,
    /// What was sent.
    input: Value,
    echoed: Value,
}

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    let mut begun = app.work(move |app| begin(app, &call, &body)).await?;
    if !begun.background {
        begun.conversing.turns.first().await?;
    }
    let (ignored, told) = (std::mem::take(&mut begun.ignored), begun.conversing.turns.notices());
    let response = match (begun.background, begun.stream) {
        (true, _) => later(begun),
        (false, true) => sse::stream(Framing::Events, |writer| stream(begun, writer)),
        (false, false) => whole(begun).await?,
    };
    Ok(told.on(with_ignored(response, &ignored)))
}

/// The endpoint that counts.
pub(crate) async fn count(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    app.work(move |app| {
        let mut fields = Fields::parse(&body, RESPONSES)?;
        let model = fields.text("model")?;
        let held = app.models.lease(model.as_deref())?;
        let read = read(&mut fields, &OfCaller { app, call: &call })?;
        let rendered = read.talk.render(held.generator()?)?;
        let object = json!({"object": "response.input_tokens", "input_tokens": rendered.ids.len()});
        let ignored = [read.talk.ignored, rendered.ignored, fields.finish_part()?].concat();
        Ok(with_ignored(reply::json(&object), &ignored))
    })
    .await
}

/// What a body asks of its model.
struct ResponsesRequest {
    read: ResponseInput,
    temperature: Option<f32>,
    top_p: Option<f32>,
    max_tokens: Option<u32>,
    /// Log-probabilities beside each token, where any are wanted.
    logprobs: Option<u32>,
    stream: bool,
    store: bool,
    background: bool,
    ignored: Vec<String>,
}

/// What `include` may name that is there.
const LOGPROBS: &str = "message.output_text.logprobs";

/// How many log-probabilities are wanted beside each token. What else may be included is of tools and forms of thoughts
/// that are not here, and changes nothing.
fn logprobs(fields: &mut Fields, ignored: &mut Vec<String>) -> Result<Option<u32>, ApiError> {
    let included = fields.list("include")?.unwrap_or_default();
    if let Some((at, other)) = included.iter().enumerate().find(|(_, name)| !name.is_string()) {
        return Err(wrong(&format!("include[{at}]"), "a string", other));
    }
    if included.iter().any(|name| name != LOGPROBS) {
        ignored.push("include".to_owned());
    }
    let top = top_logprobs(fields)?;
    Ok((included.iter().any(|name| name == LOGPROBS) || top > 0).then_some(top))
}

/// The fields of a body behind its model.
fn read_request(mut fields: Fields, kept: &dyn KeptResponses) -> Result<ResponsesRequest, ApiError> {
    let (temperature, top_p) = (fields.number("temperature")?, fields.number("top_p")?);
    let max_tokens = fields.limit("max_output_tokens")?;
    let stream = fields.switch("stream")?.unwrap_or(false);
    let store = fields.switch("store")?.unwrap_or(true);
    let background = fields.switch("background")?.unwrap_or(false);
    if background && (stream || !store) {
        let what = "`background` is for responses that are kept and asked for later: without `stream`, with `store`";
        return Err(ApiError::field("background", what));
    }
    let mut ignored = Vec::new();
    let logprobs = logprobs(&mut fields, &mut ignored)?;
    let mut read = read(&mut fields, kept)?;
    read.talk.keeps_tokens = logprobs.is_some();
    hints(&mut fields, HINTS, &mut ignored)?;
    fields.finish_answer(&mut ignored)?;
    Ok(ResponsesRequest { read, temperature, top_p, max_tokens, logprobs, stream, store, background, ignored })
}

/// What changes nothing in a body. Responses that were kept are not looked for.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, RESPONSES)?;
    fields.text("model")?;
    let ResponsesRequest { read, ignored, .. } = read_request(fields, &NothingKept)?;
    Ok([ignored, read.talk.ignored].concat())
}

/// What changes nothing in a body whose tokens are counted.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check_count(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, RESPONSES)?;
    fields.text("model")?;
    let read = read(&mut fields, &NothingKept)?;
    Ok([fields.finish_part()?, read.talk.ignored].concat())
}

fn begin(app: &Arc<App>, call: &RequestContext, body: &[u8]) -> Result<ActiveResponse, ApiError> {
    let mut fields = Fields::parse(body, RESPONSES)?;
    let model = fields.text("model")?;
    let held = app.models.lease(model.as_deref())?;
    let mut asked = GenerationParams::suggested(held.generator()?.model().generation(), app.unique());
    let wanted = read_request(fields, &OfCaller { app, call })?;
    let ResponsesRequest {
        read: ResponseInput { talk, messages, input, mut echoed },
        stream,
        store,
        background,
        mut ignored,
        ..
    } = wanted;
    asked.max_tokens = wanted.max_tokens;
    asked.sampling.logprobs = wanted.logprobs;
    asked.sampling.temperature = wanted.temperature.unwrap_or(asked.sampling.temperature);
    asked.sampling.top_p = wanted.top_p.unwrap_or(asked.sampling.top_p);
    for (name, value) in [
        ("model", json!(held.entry.name())),
        ("created_at", json!(now())),
        ("temperature", json!(asked.sampling.temperature)),
        ("top_p", json!(asked.sampling.top_p)),
        ("max_output_tokens", json!(asked.max_tokens)),
        ("top_logprobs", json!(asked.sampling.logprobs.unwrap_or(0))),
        ("store", json!(store)),
        ("background", json!(background)),
    ] {
        echoed[name] = value;
    }
    let conversing = converse(app, call, &held, &asked, &talk)?;
    ignored.extend_from_slice(&conversing.ignored);
    let (kept, owner) = (store.then_some(messages), call.caller.name.clone());
    let id = format!("resp_{}", app.id("").trim_start_matches('-'));
    let input = Arc::new(if store { items::listed(&input, id.trim_start_matches("resp_")) } else { Vec::new() });
    Ok(ActiveResponse {
        app: app.clone(),
        conversing,
        id,
        echoed,
        history: kept,
        input,
        owner,
        stream,
        background,
        ignored,
    })
}

/// The conversation of a request, behind the one that it goes on from.
fn read(fields: &mut Fields, kept: &dyn KeptResponses) -> Result<ResponseInput, ApiError> {
    let previous = fields.text("previous_response_id")?;
    let mut messages = previous.as_deref().map(|id| kept.messages(id)).transpose()?.unwrap_or_default();
    let input = fields.take("input");
    let input = items::resolved(fields.need("input", input)?, &|id| kept.item(id))?;
    let mut ignored = Vec::new();
    messages.extend(items::messages(input.clone(), &mut ignored)?);
    let instructions = fields.text("instructions")?;
    let mut all: Vec<Value> = instructions.iter().map(|text| json!({"role": "system", "content": text})).collect();
    all.extend(messages.iter().cloned());
    let list = fields.list("tools")?.unwrap_or_default();
    let choice = fields.take("tool_choice");
    let parallel = fields.switch("parallel_tool_calls")?.unwrap_or(true);
    let Reasoning { effort, budget } = reasoning(fields, &mut ignored)?;
    let (mut grammar, mut format) = (Grammar::free(), json!({"type": "text"}));
    if let Some(mut text) = fields.fields("text", TEXT)? {
        if let Some(wanted) = text.take("format") {
            grammar = Grammar::of_response_format("text.format", wanted.clone(), &mut ignored)?;
            format = wanted;
        }
        text.finish_into(&mut ignored)?;
    }
    let echoed = json!({
        "instructions": instructions,
        "metadata": fields.object("metadata")?.unwrap_or_default(),
        "parallel_tool_calls": parallel,
        "previous_response_id": previous,
        "reasoning": {"effort": effort, "summary": null},
        "text": {"format": format},
        "tool_choice": choice.clone().unwrap_or_else(|| json!("auto")),
        "tools": list,
        "truncation": "disabled",
    });
    let tools = ToolUse::new(Tool::list(&list, &mut ignored)?, choice, parallel, &mut ignored)?;
    let thinking = effort.as_deref().map(|effort| effort != "none");
    let talk = Talk { tools, reasoning_effort: effort, thinking, budget, grammar, ignored, ..Talk::new(all) };
    Ok(ResponseInput { talk, messages, input, echoed })
}
