//! POST /v1/completions.

use super::active::{ActiveCompletions, EncodedPrompt};
use super::chat::include_usage;
use super::completions_answer::{stream, whole};
use super::hints::{METADATA, USER, hints};
use crate::app::{App, now};
use crate::call::{Posted, RequestContext};
use crate::error::ApiError;
use crate::fields::{FieldSpec, Fields, honoured, refused};
use crate::fim::Gap;
use crate::generate::{GenerationParams, Prompts, SAMPLERS, SAMPLING, Speaker, Turns, start};
use crate::grammar::{FORMS, Grammar};
use crate::limits::MAX_CHOICES;
use crate::prompt::{PromptEncoding, PromptInput, prompts};
use crate::reply::with_ignored;
use crate::sse::{self, Framing};
use axum::extract::State;
use axum::response::Response;
use serde_json::Value;
use std::sync::Arc;

/// New tokens where nobody says how many, as OpenAI's interface has it.
const TOKENS: u32 = 16;

/// Log-probabilities beside each token, at most. OpenAI takes 5, vLLM and those who measure models more.
const MAX_TOP: u32 = 20;

const OWN: &[FieldSpec] = &[
    honoured("model", r#"{"type":"string"}"#),
    honoured("prompt", r#"{"anyOf":[{"type":"string"},{"type":"array","minItems":1}]}"#),
    honoured("max_tokens", r#"{"type":["integer","null"],"minimum":-1}"#),
    honoured("stream", r#"{"type":["boolean","null"]}"#),
    honoured("stream_options", r#"{"type":["object","null"]}"#),
    honoured("logprobs", r#"{"anyOf":[{"type":["integer","null"],"minimum":0,"maximum":20},{"const":false}]}"#),
    honoured("echo", r#"{"type":["boolean","null"]}"#),
    honoured("suffix", r#"{"type":["string","null"]}"#),
    honoured("best_of", r#"{"type":["integer","null"]}"#),
    honoured("return_token_ids", r#"{"type":["boolean","null"]}"#),
    honoured("parse_special", r#"{"type":["boolean","null"]}"#),
    honoured("add_special_tokens", r#"{"type":["boolean","null"]}"#),
    refused("prompt_logprobs", "use `echo` with `logprobs`", &[]),
];

const HINTS: &[FieldSpec] = &[USER, METADATA];

/// All fields of it.
pub(crate) const COMPLETIONS: &[&[FieldSpec]] = &[OWN, HINTS, FORMS, SAMPLING, SAMPLERS];

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    let mut of = app.work(move |app| begin(app, &call, &body)).await?;
    of.turns.first().await?;
    let told = of.turns.notices();
    let ignored = std::mem::take(&mut of.ignored);
    let response = match of.stream {
        true => sse::stream(Framing::Events, |writer| stream(of, writer)),
        false => whole(of).await?,
    };
    Ok(told.on(with_ignored(response, &ignored)))
}

/// What a body asks of its model.
struct CompletionsRequest {
    params: GenerationParams,
    sent: Vec<PromptInput>,
    suffix: String,
    encoding: PromptEncoding,
    grammar: Grammar,
    stream: bool,
    include_usage: bool,
    echo: bool,
    token_ids: bool,
    ignored: Vec<String>,
}

/// The fields of a body behind its model, over what that suggests.
fn read(mut fields: Fields, suggested: GenerationParams) -> Result<CompletionsRequest, ApiError> {
    let mut asked = suggested.read(&mut fields)?;
    let most =
        fields.whole::<i64>("max_tokens", "a whole number from 0, or -1 for as many as fit")?.unwrap_or(TOKENS.into());
    asked.max_tokens = match most {
        -1 => None,
        most => Some(u32::try_from(most).map_err(|_| {
            let why = format!("`max_tokens` is {most}; it must be 0 or above, or -1 for as many as fit");
            ApiError::field("max_tokens", why)
        })?),
    };
    best_of(&mut fields, asked.n)?;
    fields.leave_out("logprobs", &Value::Bool(false));
    let logprobs = fields.whole::<u32>("logprobs", "a whole number from 0 to 20")?;
    if logprobs.is_some_and(|top| top > MAX_TOP) {
        return Err(ApiError::field("logprobs", format!("`logprobs` is above {MAX_TOP}")));
    }
    let echo = fields.switch("echo")?.unwrap_or(false);
    asked.sampling.logprobs = logprobs;
    asked.prompt_logprobs = logprobs.filter(|_| echo);
    let token_ids = fields.switch("return_token_ids")?.unwrap_or(false);
    let stream = fields.switch("stream")?.unwrap_or(false);
    let mut ignored = std::mem::take(&mut asked.unread);
    let include_usage = include_usage(&mut fields, stream, &mut ignored)?;
    let usual = PromptEncoding::default();
    let encoding = PromptEncoding {
        add_special: fields.switch("add_special_tokens")?.unwrap_or(usual.add_special),
        parse_special: fields.switch("parse_special")?.unwrap_or(usual.parse_special),
    };
    let prompt = fields.take("prompt");
    let sent = prompts("prompt", fields.need("prompt", prompt)?, MAX_CHOICES)?;
    let grammar = Grammar::read(&mut fields, &mut ignored)?;
    let suffix = fields.text("suffix")?.unwrap_or_default();
    hints(&mut fields, HINTS, &mut ignored)?;
    fields.finish_answer(&mut ignored)?;
    if !suffix.is_empty() && sent.iter().any(|prompt| matches!(prompt, PromptInput::Ids(_))) {
        return Err(ApiError::field("suffix", "`suffix` needs a prompt of text: token ids are used as they are"));
    }
    Ok(CompletionsRequest {
        params: asked,
        sent,
        suffix,
        encoding,
        grammar,
        stream,
        include_usage,
        echo,
        token_ids,
        ignored,
    })
}

/// Looks at how many answers are to be compared. Where it asks for no more than are wanted, it asks for nothing.
///
/// # Errors
/// More answers than are wanted; fewer, but for the words for none.
fn best_of(fields: &mut Fields, n: u32) -> Result<(), ApiError> {
    match fields.whole("best_of", "a whole number from 1")? {
        None | Some(0 | 1) => Ok(()),
        Some(best) if best == n => Ok(()),
        Some(best) if best < n => {
            Err(fields.error("best_of", format_args!("{best} answers cannot be the best {n}; send `n` alone")))
        }
        Some(_) => Err(ApiError::unsupported("best_of", "answers are not compared with each other; send `n` alone")),
    }
}

/// What changes nothing in a body.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, COMPLETIONS)?;
    fields.text("model")?;
    Ok(read(fields, GenerationParams::unsuggested())?.ignored)
}

fn begin(app: &App, call: &RequestContext, body: &[u8]) -> Result<ActiveCompletions, ApiError> {
    let mut fields = Fields::parse(body, COMPLETIONS)?;
    let model = fields.text("model")?;
    let held = app.models.lease(model.as_deref())?;
    let generator = held.generator()?;
    let of = read(fields, GenerationParams::suggested(generator.model().generation(), app.unique()))?;
    let texts = generator.model().texts();
    let ids = |prompt: &PromptInput| match prompt {
        PromptInput::Text(before) if !of.suffix.is_empty() => {
            Gap { before, behind: &of.suffix, begun: "", files: &[] }.prompt(generator.texts()?, "suffix")
        }
        prompt => prompt.ids(texts, of.encoding),
    };
    let prompts = of.sent.iter().map(ids).collect::<Result<Vec<_>, _>>()?;
    let compiled = of.grammar.compile(generator)?;
    let asked = of.params;
    let streams =
        start(app, call, &held, Prompts::of_tokens(&prompts), &asked, &Arc::default(), &|| compiled.constraint())?;
    let logprobs = asked.sampling.logprobs.is_some();
    let keeps = logprobs || of.token_ids;
    let turns = Turns::new(streams, asked.n, || Speaker::plain(&asked.stops, &asked.stop_ids, keeps));
    let prompts = of.sent.into_iter().zip(prompts).map(|(sent, ids)| EncodedPrompt::new(sent, ids, texts)).collect();
    Ok(ActiveCompletions {
        turns,
        prompts,
        n: asked.n as usize,
        id: app.id("cmpl"),
        created: now(),
        stream: of.stream,
        include_usage: of.include_usage,
        logprobs,
        echo: of.echo,
        token_ids: of.token_ids,
        ignored: of.ignored,
    })
}
