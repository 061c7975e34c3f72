//! POST /v1/chat/completions.

use super::active::ActiveChat;
use super::chat_answer::{stream, whole};
use super::chat_fields::{CHAT, STREAM_OPTIONS};
use super::effort::{effort, think};
use super::functions;
use super::hints::{HINTS, hints};
use crate::app::{App, now};
use crate::call::{Posted, RequestContext};
use crate::conversation;
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured, ignored};
use crate::generate::{Continues, GenerationParams, Talk, ThinkingBudget, converse, thinking};
use crate::grammar::Grammar;
use crate::reply::with_ignored;
use crate::sse::{self, Framing};
use crate::tools::{Tool, ToolUse};
use axum::extract::State;
use axum::response::Response;
use serde_json::Value;
use std::sync::Arc;

/// Log-probabilities beside each token, at most.
const MAX_TOP: u32 = 20;

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    let mut chat = app.work(move |app| begin(app, &call, &body)).await?;
    chat.conversing.turns.first().await?;
    let told = chat.conversing.turns.notices();
    let ignored = std::mem::take(&mut chat.ignored);
    let response = match chat.stream {
        true => sse::stream(Framing::Events, |writer| stream(chat, writer)),
        false => whole(chat).await?,
    };
    Ok(told.on(with_ignored(response, &ignored)))
}

fn begin(app: &App, call: &RequestContext, body: &[u8]) -> Result<ActiveChat, ApiError> {
    let mut fields = Fields::parse(body, CHAT)?;
    let model = fields.text("model")?;
    let held = app.models.lease(model.as_deref())?;
    let generator = held.generator()?;
    let suggested = GenerationParams::suggested(generator.model().generation(), app.unique());
    let ChatRequest { params: asked, talk, functions, stream, include_usage, logprobs, token_ids, mut ignored } =
        read(fields, suggested)?;
    let conversing = converse(app, call, &held, &asked, &talk);
    let conversing = conversing.map_err(|error| if functions { functions::of_functions(error) } else { error })?;
    ignored.extend_from_slice(&conversing.ignored);
    Ok(ActiveChat {
        conversing,
        id: app.id("chatcmpl"),
        created: now(),
        functions,
        stream,
        include_usage,
        logprobs,
        token_ids,
        ignored,
    })
}

/// What a body asks of its model.
struct ChatRequest {
    params: GenerationParams,
    talk: Talk,
    functions: bool,
    stream: bool,
    include_usage: bool,
    logprobs: bool,
    token_ids: bool,
    ignored: Vec<String>,
}

/// The fields of a body behind its model, over what that suggests.
fn read(mut fields: Fields, suggested: GenerationParams) -> Result<ChatRequest, ApiError> {
    let mut asked = suggested.read(&mut fields)?;
    let new = fields.limit("max_completion_tokens")?;
    let old = fields.limit("max_tokens")?;
    // llama.cpp's name of it.
    let older = fields.limit("n_predict")?;
    asked.max_tokens = new.or(old).or(older);
    let logprobs = fields.switch("logprobs")?.unwrap_or(false);
    let top = top_logprobs(&mut fields)?;
    if top > 0 && !logprobs {
        return Err(ApiError::field("top_logprobs", "`top_logprobs` needs `logprobs`: true"));
    }
    asked.sampling.logprobs = logprobs.then_some(top);
    let token_ids = fields.switch("return_token_ids")?.unwrap_or(false);
    let stream = fields.switch("stream")?.unwrap_or(false);
    let mut ignored = std::mem::take(&mut asked.unread);
    let include_usage = include_usage(&mut fields, stream, &mut ignored)?;
    let functions = functions::are_sent(&fields);
    let talk = Talk { keeps_tokens: logprobs || token_ids, ..talk(&mut fields)? };
    hints(&mut fields, HINTS, &mut ignored)?;
    fields.finish_answer(&mut ignored)?;
    Ok(ChatRequest { params: asked, talk, functions, stream, include_usage, logprobs, token_ids, ignored })
}

/// Log-probabilities beside each token.
///
/// # Errors
/// More than can be had.
pub(crate) fn top_logprobs(fields: &mut Fields) -> Result<u32, ApiError> {
    let top = fields.whole::<u32>("top_logprobs", "a whole number from 0 to 20")?.unwrap_or(0);
    if top > MAX_TOP {
        return Err(ApiError::field("top_logprobs", format!("`top_logprobs` is above {MAX_TOP}")));
    }
    Ok(top)
}

/// What changes nothing in a body.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, CHAT)?;
    fields.text("model")?;
    let ChatRequest { talk, ignored, .. } = read(fields, GenerationParams::unsuggested())?;
    Ok([ignored, talk.ignored].concat())
}

/// What changes nothing in a conversation that is only rendered.
///
/// # Errors
/// What is none, whatever the model.
pub(crate) fn check_talk(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, CHAT)?;
    fields.text("model")?;
    let talk = talk(&mut fields)?;
    Ok([fields.finish_part()?, talk.ignored].concat())
}

/// Whether a stream is to end with its usage. What is said of a stream changes nothing where there is none.
///
/// # Errors
/// An option that is none.
pub(super) fn include_usage(fields: &mut Fields, stream: bool, ignored: &mut Vec<String>) -> Result<bool, ApiError> {
    let Some(mut options) = fields.fields("stream_options", STREAM_OPTIONS)? else { return Ok(false) };
    let include = options.switch("include_usage")?.unwrap_or(false);
    ["include_obfuscation", "continuous_usage_stats"]
        .iter()
        .for_each(|name| options.leave_out(name, &Value::Bool(false)));
    let names = options.finish()?;
    if stream {
        ignored.extend(names);
    } else if include || !names.is_empty() {
        ignored.push("stream_options".to_owned());
    }
    Ok(stream && include)
}

/// The conversation of a body.
pub(crate) fn talk(fields: &mut Fields) -> Result<Talk, ApiError> {
    let messages = fields.list("messages")?;
    let mut messages = fields.need("messages", messages)?;
    let generation_prompt = fields.switch("add_generation_prompt")?;
    let continues = Continues::read(fields.switch("continue_final_message")?, generation_prompt, &mut messages)?;
    let mut ignored = Vec::new();
    let messages = conversation::messages("messages", messages, &mut ignored)?;
    let list = fields.list("tools")?.unwrap_or_default();
    let choice = fields.take("tool_choice");
    let parallel = fields.switch("parallel_tool_calls")?.unwrap_or(true);
    let tools = ToolUse::new(Tool::list(&list, &mut ignored)?, choice, parallel, &mut ignored)?;
    let tools = functions::read(fields, tools, &mut ignored)?;
    let kwargs = fields.object("chat_template_kwargs")?.unwrap_or_default();
    let mut reasoning_effort = effort(fields, "reasoning_effort")?;
    let names = ["thinking_token_budget", "thinking_budget_tokens", "thinking_budget"];
    let mut budget = ThinkingBudget::read(fields, &names)?;
    let asked = reasoning(fields, &mut ignored)?;
    let (switched, most) = thinking(fields, &mut ignored)?;
    let (thinks, hard) = think(fields)?;
    let switched = switched.or(fields.switch("enable_thinking")?).or(thinks);
    reasoning_effort = reasoning_effort.or(asked.effort).or(hard);
    budget = budget.or(asked.budget).or(most);
    let grammar = Grammar::read(fields, &mut ignored)?;
    Ok(Talk {
        ignored,
        tools,
        documents: fields.list("documents")?,
        thinking: switched.or(reasoning_effort.as_deref().map(|effort| effort != "none")),
        reasoning_effort,
        budget,
        kwargs,
        add_generation_prompt: generation_prompt.unwrap_or(true),
        continues,
        grammar,
        ..Talk::new(messages)
    })
}

/// How hard a model is to think, and for how many tokens.
#[derive(Default)]
pub(crate) struct Reasoning {
    pub(crate) effort: Option<String>,
    pub(crate) budget: Option<ThinkingBudget>,
}

const REASONING: FieldTable = &[&[
    honoured("effort", "{}"),
    honoured("budget", "{}"),
    honoured("max_tokens", "{}"),
    ignored("summary", "{}"),
    ignored("generate_summary", "{}"),
]];

/// What the field `reasoning` says.
///
/// # Errors
/// What is neither.
pub(crate) fn reasoning(fields: &mut Fields, ignored: &mut Vec<String>) -> Result<Reasoning, ApiError> {
    let Some(mut reasoning) = fields.fields("reasoning", REASONING)? else { return Ok(Reasoning::default()) };
    let effort = effort(&mut reasoning, "effort")?;
    let budget = ThinkingBudget::read(&mut reasoning, &["budget", "max_tokens"])?;
    reasoning.finish_into(ignored)?;
    Ok(Reasoning { effort, budget })
}
