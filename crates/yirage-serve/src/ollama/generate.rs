//! POST /api/chat and /api/generate.

use super::active::OllamaAnswer;
use super::answer::{stream, whole};
use super::clock;
use super::keep::keep;
use super::options::{SHARED, grammar, read_options, untagged};
use crate::app::App;
use crate::call::{Posted, RequestContext};
use crate::conversation;
use crate::error::ApiError;
use crate::fields::{FieldSpec, FieldTable, Fields, honoured, refused};
use crate::fim::Gap;
use crate::generate::{Conversing, GenerationParams, Prompts, Speaker, Talk, Turns, converse, start};
use crate::grammar::Grammar;
use crate::models::{KeepAlive, ModelLease};
use crate::openai::effort::think;
use crate::reply::{self, with_ignored};
use crate::sse::{self, Framing};
use crate::tools::{Tool, ToolUse};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The fields of /api/chat.
pub(crate) const CHAT: FieldTable = &[
    SHARED,
    &[
        honoured("messages", r#"{"type":"array","items":{"type":"object"}}"#),
        honoured("tools", r#"{"type":["array","null"]}"#),
    ],
];

const TEXT: &[FieldSpec] = &[
    honoured("prompt", r#"{"type":["string","null"]}"#),
    honoured("suffix", r#"{"type":["string","null"]}"#),
    honoured("system", r#"{"type":["string","null"]}"#),
    honoured("raw", r#"{"type":["boolean","null"]}"#),
    refused("template", "the model's own template is applied; send `raw` without one", &["\"\""]),
    refused("context", "send the conversation to /api/chat", &["[]"]),
];

/// The fields of /api/generate.
pub(crate) const GENERATE: FieldTable = &[SHARED, TEXT];

/// What a request is for.
enum OllamaAction {
    Answer(Box<OllamaAnswer>),
    /// Nothing was asked: the model is loaded or unloaded.
    Only {
        model: String,
        reason: &'static str,
    },
}

struct OllamaRequest {
    action: OllamaAction,
    stream: bool,
    ignored: Vec<String>,
}

/// POST /api/chat.
pub(crate) async fn chat(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    let read = app.work(move |app| begin_chat(app, &call, &body)).await?;
    respond(read, true).await
}

/// POST /api/generate.
pub(crate) async fn generate(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    let read = app.work(move |app| begin_text(app, &call, &body)).await?;
    respond(read, false).await
}

async fn respond(read: OllamaRequest, as_message: bool) -> Result<Response, ApiError> {
    let response = match read.action {
        OllamaAction::Only { model, reason } => {
            let mut object = json!({"model": model, "created_at": clock::now(), "done": true, "done_reason": reason});
            match as_message {
                true => object["message"] = json!({"role": "assistant", "content": ""}),
                false => object["response"] = "".into(),
            }
            reply::json(&object)
        }
        OllamaAction::Answer(mut begun) => {
            begun.turns.first().await?;
            let told = begun.turns.notices();
            told.on(match read.stream {
                true => sse::stream(Framing::Lines, |writer| stream(*begun, writer)),
                false => whole(*begun).await?,
            })
        }
    };
    Ok(with_ignored(response, &read.ignored))
}

/// What both kinds of requests ask of their model.
struct OllamaCommonFields {
    stream: bool,
    keep: Option<KeepAlive>,
    params: GenerationParams,
    grammar: Grammar,
    thinking: Option<bool>,
    effort: Option<String>,
    ignored: Vec<String>,
}

fn common_fields(
    fields: &mut Fields,
    suggested: GenerationParams,
    context: u32,
) -> Result<OllamaCommonFields, ApiError> {
    let (asked, ignored) = read_options(suggested, context, fields)?;
    let (thinking, effort) = think(fields)?;
    let stream = fields.switch("stream")?.unwrap_or(true);
    let (keep, grammar) = (keep(fields)?, grammar(fields)?);
    Ok(OllamaCommonFields { stream, keep, params: asked, grammar, thinking, effort, ignored })
}

/// A request whose model is open.
struct OllamaModelRequest {
    lease: ModelLease,
    common: OllamaCommonFields,
}

fn open(app: &App, fields: &mut Fields) -> Result<OllamaModelRequest, ApiError> {
    let model = untagged(app, fields.text("model")?);
    let held = app.models.lease(model.as_deref())?;
    let model = held.generator()?.model();
    let suggested = GenerationParams::suggested(model.generation(), app.unique());
    let shared = common_fields(fields, suggested, model.facts().context)?;
    Ok(OllamaModelRequest { lease: held, common: shared })
}

impl OllamaModelRequest {
    /// The response to a request that asks nothing.
    fn only(self, app: &App, more: Vec<String>) -> Result<OllamaRequest, ApiError> {
        let OllamaModelRequest { lease: held, common: shared } = self;
        let model = held.entry.name().to_owned();
        let unload = shared.keep == Some(KeepAlive::For(Duration::ZERO));
        let reason = if unload { "unload" } else { "load" };
        shared.keep.iter().for_each(|keep| held.entry.keep(*keep));
        drop(held);
        if unload {
            app.models.unload(Some(&model))?;
        }
        let ignored = [shared.ignored, more].concat();
        Ok(OllamaRequest { action: OllamaAction::Only { model, reason }, stream: false, ignored })
    }

    fn into_answer(self, turns: Turns, as_message: bool, more: Vec<String>) -> OllamaRequest {
        let OllamaModelRequest { lease: held, common: shared } = self;
        // It counts from the answer's end.
        shared.keep.iter().for_each(|keep| held.entry.keep(*keep));
        let begun = Box::new(OllamaAnswer { turns, as_message, began: Instant::now() });
        OllamaRequest {
            action: OllamaAction::Answer(begun),
            stream: shared.stream,
            ignored: [shared.ignored, more].concat(),
        }
    }
}

impl OllamaCommonFields {
    fn talk(&self, messages: Vec<Value>) -> Talk {
        Talk {
            grammar: self.grammar.clone(),
            thinking: self.thinking,
            reasoning_effort: self.effort.clone(),
            ..Talk::new(messages)
        }
    }
}

/// What a body of /api/chat says beside what both kinds say.
struct OfChat {
    messages: Vec<Value>,
    tools: Option<ToolUse>,
    ignored: Vec<String>,
}

fn of_chat(mut fields: Fields) -> Result<OfChat, ApiError> {
    let messages = fields.list("messages")?.unwrap_or_default();
    let mut ignored = Vec::new();
    let tools = Tool::list(&fields.list("tools")?.unwrap_or_default(), &mut ignored)?;
    fields.finish_answer(&mut ignored)?;
    if messages.is_empty() {
        return Ok(OfChat { messages, tools: None, ignored });
    }
    let tools = ToolUse::new(tools, None, true, &mut ignored)?;
    let messages = conversation::messages("messages", messages, &mut ignored)?;
    Ok(OfChat { messages, tools, ignored })
}

/// What a body of /api/generate says beside what both kinds say.
struct OfText {
    prompt: String,
    system: String,
    suffix: String,
    raw: bool,
    ignored: Vec<String>,
}

fn of_text(mut fields: Fields) -> Result<OfText, ApiError> {
    let prompt = fields.text("prompt")?.unwrap_or_default();
    let system = fields.text("system")?.unwrap_or_default();
    let suffix = fields.text("suffix")?.unwrap_or_default();
    let raw = fields.switch("raw")?.unwrap_or(false);
    let mut ignored = Vec::new();
    fields.finish_answer(&mut ignored)?;
    Ok(OfText { prompt, system, suffix, raw, ignored })
}

/// What changes nothing in a body of /api/chat.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check_chat(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, CHAT)?;
    fields.text("model")?;
    let shared = common_fields(&mut fields, GenerationParams::unsuggested(), u32::MAX)?;
    Ok([shared.ignored, of_chat(fields)?.ignored].concat())
}

/// What changes nothing in a body of /api/generate.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check_generate(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, GENERATE)?;
    fields.text("model")?;
    let shared = common_fields(&mut fields, GenerationParams::unsuggested(), u32::MAX)?;
    Ok([shared.ignored, of_text(fields)?.ignored].concat())
}

fn begin_chat(app: &App, call: &RequestContext, body: &[u8]) -> Result<OllamaRequest, ApiError> {
    let mut fields = Fields::parse(body, CHAT)?;
    let opened = open(app, &mut fields)?;
    let OfChat { messages, tools, ignored } = of_chat(fields)?;
    if messages.is_empty() {
        return opened.only(app, ignored);
    }
    let talk = Talk { tools, ..opened.common.talk(messages) };
    let Conversing { turns, ignored: more, .. } = converse(app, call, &opened.lease, &opened.common.params, &talk)?;
    Ok(opened.into_answer(turns, true, [ignored, more].concat()))
}

fn begin_text(app: &App, call: &RequestContext, body: &[u8]) -> Result<OllamaRequest, ApiError> {
    let mut fields = Fields::parse(body, GENERATE)?;
    let opened = open(app, &mut fields)?;
    let OfText { prompt, system, suffix, raw, ignored } = of_text(fields)?;
    if prompt.is_empty() {
        return opened.only(app, ignored);
    }
    let OllamaModelRequest { lease: held, common: shared } = &opened;
    let generator = held.generator()?;
    if raw || !suffix.is_empty() || generator.template_source().is_none() {
        if !system.is_empty() {
            return Err(ApiError::field("system", "`system` needs a chat template, and none is applied"));
        }
        let texts = generator.texts()?;
        let gap = Gap { before: &prompt, behind: &suffix, begun: "", files: &[] };
        let ids = if suffix.is_empty() { texts.encode_raw(&prompt, Some(true))? } else { gap.prompt(texts, "suffix")? };
        let compiled = shared.grammar.compile(generator)?;
        let asked = &shared.params;
        let streams =
            start(app, call, held, Prompts::of_tokens(&[ids]), asked, &Arc::default(), &|| compiled.constraint())?;
        let turns = Turns::new(streams, 1, || Speaker::plain(&asked.stops, &[], false));
        return Ok(opened.into_answer(turns, false, ignored));
    }
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(yirage_session::message("system", &system));
    }
    messages.push(yirage_session::message("user", &prompt));
    let Conversing { turns, ignored: more, .. } = converse(app, call, held, &shared.params, &shared.talk(messages))?;
    Ok(opened.into_answer(turns, false, [ignored, more].concat()))
}
