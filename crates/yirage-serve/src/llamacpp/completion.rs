//! POST /completion and /infill: llama.cpp's own forms of continuing a text and of filling one in.

use super::cut::InfillLimits;
use crate::app::App;
use crate::call::{Posted, RequestContext};
use crate::error::ApiError;
use crate::fields::{FieldSpec, FieldTable, Fields, honoured, ignored, refused};
use crate::fim::{FimFile, Gap};
use crate::generate::{
    AnswerEnd, AnswerUpdate, Ending, GenerationParams, Prompts, SAMPLING, Speaker, StopCause, Turns, start,
};
use crate::grammar::{FORMS, Grammar};
use crate::models::{Generator, ModelLease, SlotKey};
use crate::prompt::{PromptEncoding, PromptInput, prompts};
use crate::reply::{self, with_ignored};
use crate::response_parser::ResponsePiece;
use crate::sse::{self, Framing, Gone, SseWriter};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const OWN: &[FieldSpec] = &[
    honoured("model", r#"{"type":["string","null"]}"#),
    honoured("n_predict", r#"{"type":"integer"}"#),
    honoured("max_tokens", r#"{"type":"integer"}"#),
    honoured("stream", r#"{"type":"boolean"}"#),
    honoured("repeat_penalty", r#"{"type":"number","minimum":0.01,"maximum":100}"#),
    honoured("return_tokens", r#"{"type":"boolean"}"#),
    honoured("response_fields", r#"{"type":["array","null"],"items":{"type":"string"}}"#),
    honoured("n_indent", r#"{"type":["integer","null"],"minimum":0}"#),
    honoured("t_max_predict_ms", r#"{"type":["integer","null"]}"#),
    honoured("id_slot", r#"{"type":"integer","minimum":-1}"#),
    // A prompt is computed whole, or nothing could be said of it.
    ignored("t_max_prompt_ms", r#"{"type":"integer"}"#),
    // The order of samplers is fixed; those that are not wanted are left at what asks for nothing.
    ignored("samplers", "{}"),
    ignored("timings_per_token", r#"{"type":"boolean"}"#),
    ignored("n_keep", r#"{"type":"integer"}"#),
    ignored("repeat_last_n", r#"{"type":"integer"}"#),
    refused("n_probs", "use /v1/completions with `logprobs`", &["0"]),
    refused("image_data", "only text is understood", &["[]"]),
    refused("lora", "there are no adapters", &["[]"]),
];

const TEXT: &[FieldSpec] = &[honoured("prompt", r#"{"anyOf":[{"type":"string"},{"type":"array","minItems":1}]}"#)];

/// The fields of it.
pub(crate) const COMPLETION: FieldTable = &[TEXT, OWN, FORMS, SAMPLING];

const GAP: &[FieldSpec] = &[
    honoured("input_prefix", r#"{"type":"string"}"#),
    honoured("input_suffix", r#"{"type":"string"}"#),
    honoured("input_extra", r#"{"type":["array","null"],"items":{"type":"object","required":["text"]}}"#),
    honoured("prompt", r#"{"type":["string","null"]}"#),
];

/// The fields of /infill.
pub(crate) const INFILL: FieldTable = &[GAP, OWN, FORMS, SAMPLING];

const EXTRA: FieldTable = &[&[honoured("filename", "{}"), honoured("text", "{}")]];

struct Completion {
    /// None where there was nothing to continue.
    turns: Option<Turns>,
    lease: ModelLease,
    prompt: Vec<u32>,
    shape: LlamaReplyOptions,
    /// By which the prompt and its answer are found again.
    slot: Option<SlotKey>,
    began: Instant,
    ignored: Vec<String>,
}

/// How an answer is given.
#[derive(Default)]
struct LlamaReplyOptions {
    stream: bool,
    /// Whether ids of tokens are wanted.
    tokens: bool,
    /// The fields that are wanted of an answer; none is all.
    fields: Option<Vec<String>>,
    cut: InfillLimits,
    /// The number of a slot; none is any.
    slot: Option<usize>,
}

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    respond(app.work(move |app| begin(app, &call, &body, COMPLETION, text)).await?).await
}

/// POST /infill: a text between two others.
pub(crate) async fn infill(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    respond(app.work(move |app| begin(app, &call, &body, INFILL, gap)).await?).await
}

async fn respond(mut of: Completion) -> Result<Response, ApiError> {
    let ignored = std::mem::take(&mut of.ignored);
    let turns = of.turns.take();
    let (response, told) = match turns {
        Some(mut turns) => {
            turns.first().await?;
            let told = turns.notices();
            let response = match of.shape.stream {
                true => sse::stream(Framing::Events, |writer| stream(of, turns, writer)),
                false => whole(&of, turns).await?,
            };
            (response, Some(told))
        }
        None if of.shape.stream => (sse::stream(Framing::Events, |writer| nothing(of, writer)), None),
        None => (reply::json(&of.shown(of.last(&LlamaProgress::default(), None))), None),
    };
    let response = with_ignored(response, &ignored);
    Ok(match told {
        Some(told) => told.on(response),
        None => response,
    })
}

/// What a prompt is made of.
enum LlamaPrompt {
    Text(Vec<PromptInput>),
    Gap { before: String, behind: String, begun: String, files: Vec<FimFile> },
}

/// Reads the prompt of a body.
type ReadPrompt = fn(&mut Fields, &mut Vec<String>) -> Result<LlamaPrompt, ApiError>;

fn text(fields: &mut Fields, _: &mut Vec<String>) -> Result<LlamaPrompt, ApiError> {
    let prompt = fields.take("prompt");
    Ok(LlamaPrompt::Text(prompts("prompt", fields.need("prompt", prompt)?, 1)?))
}

fn gap(fields: &mut Fields, ignored: &mut Vec<String>) -> Result<LlamaPrompt, ApiError> {
    let (before, behind) = (fields.text("input_prefix")?, fields.text("input_suffix")?);
    let before = fields.need("input_prefix", before)?;
    let behind = fields.need("input_suffix", behind)?;
    let begun = fields.text("prompt")?.unwrap_or_default();
    let mut files = Vec::new();
    for (at, extra) in fields.list("input_extra")?.unwrap_or_default().into_iter().enumerate() {
        let mut extra = Fields::within(extra, EXTRA, &format!("input_extra[{at}]"))?;
        let (name, text) = (extra.text("filename")?, extra.text("text")?);
        files.push(FimFile { name: name.unwrap_or_else(|| "tmp".into()), text: extra.need("text", text)? });
        extra.finish_into(ignored)?;
    }
    Ok(LlamaPrompt::Gap { before, behind, begun, files })
}

impl LlamaPrompt {
    /// Its ids for a model.
    ///
    /// # Errors
    /// A model that cannot take it.
    fn ids(&self, generator: &Generator) -> Result<Vec<u32>, ApiError> {
        match self {
            LlamaPrompt::Text(prompts) => {
                let texts = generator.model().texts();
                let ids = prompts
                    .iter()
                    .map(|prompt| prompt.ids(texts, PromptEncoding::default()))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(ids.concat())
            }
            LlamaPrompt::Gap { before, behind, begun, files } => {
                Gap { before, behind, begun, files }.prompt(generator.texts()?, "input_prefix")
            }
        }
    }
}

/// What a body asks of its model.
struct LlamaRequest {
    params: GenerationParams,
    sent: LlamaPrompt,
    grammar: Grammar,
    shape: LlamaReplyOptions,
    ignored: Vec<String>,
}

/// The fields of a body behind its model, over what that suggests.
fn read(mut fields: Fields, suggested: GenerationParams, prompt: ReadPrompt) -> Result<LlamaRequest, ApiError> {
    // Here -1 asks for any seed.
    fields.leave_out("seed", &json!(-1));
    let mut asked = suggested.read(&mut fields)?;
    if asked.n != 1 {
        return Err(ApiError::unsupported("n", "use /v1/completions"));
    }
    if let Some(penalty) = fields.number("repeat_penalty")? {
        asked.sampling.repetition_penalty = penalty;
    }
    let most = fields.whole::<i64>("n_predict", "a whole number, -1 for as many as fit")?;
    let most = most.or(fields.whole::<i64>("max_tokens", "a whole number, -1 for as many as fit")?);
    // -1 and -2 are llama.cpp's words for as many as fit.
    asked.max_tokens = most.and_then(|most| u32::try_from(most).ok());
    let shape = shape(&mut fields)?;
    let mut ignored = Vec::new();
    let sent = prompt(&mut fields, &mut ignored)?;
    let grammar = Grammar::read(&mut fields, &mut ignored)?;
    fields.finish_into(&mut ignored)?;
    Ok(LlamaRequest { params: asked, sent, grammar, shape, ignored })
}

fn shape(fields: &mut Fields) -> Result<LlamaReplyOptions, ApiError> {
    let tokens = fields.switch("return_tokens")?.unwrap_or(false);
    let stream = fields.switch("stream")?.unwrap_or(false);
    let named = fields.texts("response_fields")?;
    let indent = fields.whole::<u32>("n_indent", "a whole number")?.unwrap_or(0) as usize;
    // No time, and -1, are no limit.
    let time = fields.whole::<i64>("t_max_predict_ms", "milliseconds")?.and_then(|time| u64::try_from(time).ok());
    let time = time.filter(|time| *time > 0).map(Duration::from_millis);
    Ok(LlamaReplyOptions {
        stream,
        tokens,
        fields: Some(named).filter(|named| !named.is_empty()),
        cut: InfillLimits { indent, time },
        // -1 is any.
        slot: fields.whole::<i64>("id_slot", "a whole number")?.and_then(|slot| usize::try_from(slot).ok()),
    })
}

/// What changes nothing in a body of /completion.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check(body: &[u8]) -> Result<Vec<String>, ApiError> {
    checked(body, COMPLETION, text)
}

/// What changes nothing in a body of /infill.
///
/// # Errors
/// What is no request, whatever the model.
pub(crate) fn check_infill(body: &[u8]) -> Result<Vec<String>, ApiError> {
    checked(body, INFILL, gap)
}

fn checked(body: &[u8], table: FieldTable, prompt: ReadPrompt) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, table)?;
    fields.text("model")?;
    Ok(read(fields, GenerationParams::unsuggested(), prompt)?.ignored)
}

fn begin(
    app: &App,
    call: &RequestContext,
    body: &[u8],
    table: FieldTable,
    prompt: ReadPrompt,
) -> Result<Completion, ApiError> {
    let began = Instant::now();
    let mut fields = Fields::parse(body, table)?;
    let model = fields.text("model")?;
    let held = app.models.lease(model.as_deref())?;
    let generator = held.generator()?;
    let suggested = GenerationParams::suggested(generator.model().generation(), app.unique());
    let LlamaRequest { params: asked, sent, grammar, shape, mut ignored } = read(fields, suggested, prompt)?;
    let prompt = sent.ids(generator)?;
    let mut slot = shape.slot.map(|id| slot_key(id, generator, call)).transpose()?;
    // A slot names what the cache has for all of the caller's prompts.
    if slot.is_some() && (!asked.cache_salt.is_empty() || !asked.cache_prompt) {
        slot = None;
        ignored.push("id_slot".into());
    }
    if prompt.is_empty() {
        // Clients ask so whether the server is there, and to have it warm.
        return Ok(Completion { turns: None, lease: held, prompt, shape, slot, began, ignored });
    }
    let compiled = grammar.compile(generator)?;
    let streams =
        start(app, call, &held, Prompts::of_tokens(std::slice::from_ref(&prompt)), &asked, &Arc::default(), &|| {
            compiled.constraint()
        })?;
    let turns = Some(Turns::new(streams, 1, || Speaker::plain(&asked.stops, &asked.stop_ids, true)));
    Ok(Completion { turns, lease: held, prompt, shape, slot, began, ignored })
}

/// The slot of a number, as the caller's prompts are kept.
///
/// # Errors
/// A number beyond those of the model.
fn slot_key(id: usize, generator: &Generator, call: &RequestContext) -> Result<SlotKey, ApiError> {
    let most = generator.max_seqs();
    if id >= most {
        let what = format!("expected a slot from 0 to {}, got {id}", most.saturating_sub(1));
        return Err(ApiError::field("id_slot", what));
    }
    Ok(SlotKey { id, salt: call.caller.salt.clone() })
}

/// Text and ids of what was said, and the end where it is one.
fn parts(said: AnswerUpdate) -> (String, Vec<u32>, Option<Box<AnswerEnd>>) {
    let (pieces, tokens, end) = match said {
        AnswerUpdate::Pieces { pieces, tokens, .. } => (pieces, tokens, None),
        AnswerUpdate::Ended { pieces, tokens, end, .. } => (pieces, tokens, Some(end)),
        AnswerUpdate::Prompt { .. } => return (String::new(), Vec::new(), None),
    };
    let text = |piece| if let ResponsePiece::Content(text) = piece { text } else { String::new() };
    (pieces.into_iter().map(text).collect(), tokens.iter().map(|token| token.id).collect(), end)
}

/// What has been said so far.
#[derive(Default)]
struct LlamaProgress {
    text: String,
    ids: Vec<u32>,
    /// Until the first token, and from then on.
    waited: Duration,
    spoken: Duration,
}

impl LlamaProgress {
    /// Takes ids that came so long after the request.
    fn heard(&mut self, ids: &[u32], since: Duration) {
        match self.ids.is_empty() {
            true => self.waited = since,
            false => self.spoken = since.saturating_sub(self.waited),
        }
        self.ids.extend_from_slice(ids);
    }
}

async fn whole(of: &Completion, mut turns: Turns) -> Result<Response, ApiError> {
    let (mut seen, mut ended, mut watch) = (LlamaProgress::default(), None, of.shape.cut.watch());
    while let Some(said) = turns.next().await? {
        let (mut more, tokens, end) = parts(said);
        let cut = watch.take(&mut more);
        seen.text.push_str(&more);
        seen.heard(&tokens, of.began.elapsed());
        ended = end.or(ended);
        // What is dropped ends its answer.
        if cut {
            break;
        }
    }
    of.note(&seen)?;
    Ok(reply::json(&of.shown(of.last(&seen, ended.as_deref()))))
}

async fn stream(of: Completion, mut turns: Turns, writer: SseWriter) -> Result<(), Gone> {
    let (mut seen, mut watch) = (LlamaProgress::default(), of.shape.cut.watch());
    loop {
        let said = match turns.next_for(&writer).await? {
            Ok(Some(said)) => said,
            Ok(None) => return Ok(()),
            Err(error) => return writer.data(&error.openai()).await,
        };
        let (mut text, ids, end) = parts(said);
        let cut = watch.take(&mut text);
        seen.heard(&ids, of.began.elapsed());
        let part = LlamaProgress { text, ids, ..LlamaProgress::default() };
        if end.is_some() || cut {
            if let Err(error) = of.note(&seen) {
                return writer.data(&error.openai()).await;
            }
            let last = of.last_part(&seen, part, end.as_deref());
            return writer.data(&of.shown(last)).await;
        }
        let mut object = json!({"index": 0, "stop": false, "content": part.text});
        if of.shape.tokens {
            object["tokens"] = json!(part.ids);
        }
        writer.data(&object).await?;
    }
}

/// The stream of an answer to nothing.
async fn nothing(of: Completion, writer: SseWriter) -> Result<(), Gone> {
    writer.data(&of.shown(of.last(&LlamaProgress::default(), None))).await
}

/// The value at a path such as `timings/prompt_ms`.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').try_fold(object, |inner, name| inner.get(name))
}

impl Completion {
    /// Names what was computed by its slot.
    ///
    /// # Errors
    /// A model that is loaded no more.
    fn note(&self, seen: &LlamaProgress) -> Result<(), ApiError> {
        if let Some(slot) = &self.slot {
            self.lease.generator()?.slots().note(slot.clone(), [&self.prompt[..], &seen.ids].concat());
        }
        Ok(())
    }

    /// An object with the fields that are wanted, under the names by which they were asked for.
    fn shown(&self, object: Value) -> Value {
        let Some(fields) = &self.shape.fields else { return object };
        fields.iter().filter_map(|path| Some((path.clone(), at(&object, path)?.clone()))).collect()
    }

    /// The last object of a stream: what all of it came to, and its last part.
    fn last_part(&self, seen: &LlamaProgress, part: LlamaProgress, end: Option<&AnswerEnd>) -> Value {
        let mut object = self.last(seen, end);
        object["content"] = part.text.into();
        if self.shape.tokens {
            object["tokens"] = json!(part.ids);
        }
        object
    }

    /// What the last object says. An answer without an end was cut off.
    fn last(&self, seen: &LlamaProgress, end: Option<&AnswerEnd>) -> Value {
        let mut object = json!({
            "index": 0,
            "content": seen.text,
            "model": self.lease.entry.name(),
            "stop": true,
            "stop_type": "limit",
            "stopping_word": "",
            "tokens": if self.shape.tokens { json!(seen.ids) } else { json!([]) },
            "tokens_evaluated": self.prompt.len(),
            "tokens_predicted": seen.ids.len(),
            "tokens_cached": 0,
            "truncated": false,
            "timings": timings((self.prompt.len(), seen.waited), (seen.ids.len(), seen.spoken)),
        });
        let Some(end) = end else { return object };
        let (finished, word) = (&end.finished, matches!(&end.stop, Some(StopCause::Text(_))));
        let usage = &finished.usage;
        object["stop_type"] = match end.ending {
            Ending::Length => "limit",
            _ if word => "word",
            _ => "eos",
        }
        .into();
        if let Some(StopCause::Text(text)) = &end.stop {
            object["stopping_word"] = text.as_str().into();
        }
        object["tokens_predicted"] = usage.new_tokens.into();
        object["tokens_cached"] = usage.cached_tokens.into();
        let computed = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
        object["timings"] = timings((computed, finished.prefill), (usage.new_tokens, finished.decode));
        object
    }
}

/// Tokens and times of a prompt and of an answer.
fn timings((computed, prefill): (usize, Duration), (new, decode): (usize, Duration)) -> Value {
    let rate = |tokens: usize, seconds: f64| if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
    let (prefill, decode) = (prefill.as_secs_f64(), decode.as_secs_f64());
    json!({
        "prompt_n": computed,
        "prompt_ms": prefill * 1e3,
        "prompt_per_second": rate(computed, prefill),
        "predicted_n": new,
        "predicted_ms": decode * 1e3,
        "predicted_per_second": rate(new.saturating_sub(1), decode),
    })
}
