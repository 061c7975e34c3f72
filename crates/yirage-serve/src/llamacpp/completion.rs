//! POST /completion and /infill: llama.cpp's own forms of continuing a text and of filling one in.

use super::active::{ActiveLlamaCompletion, LlamaReplyOptions};
use super::completion_answer::{nothing, nothing_whole, stream, whole};
use super::cut::InfillLimits;
use super::prompts::{MixedPrompt, PROMPT};
use crate::app::App;
use crate::call::{Posted, RequestContext};
use crate::error::ApiError;
use crate::fields::{FieldSpec, FieldTable, Fields, honoured, ignored, refused};
use crate::fim::{FimFile, Gap};
use crate::generate::{GenerationParams, Prompts, SAMPLERS, SAMPLING, Speaker, Turns, start};
use crate::grammar::{FORMS, Grammar};
use crate::limits::MAX_CHOICES;
use crate::models::{Generator, SlotKey};
use crate::reply::with_ignored;
use crate::sse::{self, Framing};
use axum::extract::State;
use axum::response::Response;
use std::sync::Arc;
use std::time::{Duration, Instant};
use yirage_engine::limits::MAX_LOGPROBS;

const OWN: &[FieldSpec] = &[
    honoured("model", r#"{"type":["string","null"]}"#),
    honoured("n_predict", r#"{"type":"integer"}"#),
    honoured("max_tokens", r#"{"type":"integer"}"#),
    honoured("stream", r#"{"type":"boolean"}"#),
    honoured("return_tokens", r#"{"type":"boolean"}"#),
    honoured("response_fields", r#"{"type":["array","null"],"items":{"type":"string"}}"#),
    honoured("n_indent", r#"{"type":["integer","null"],"minimum":0}"#),
    honoured("t_max_predict_ms", r#"{"type":["integer","null"]}"#),
    honoured("id_slot", r#"{"type":"integer","minimum":-1}"#),
    // A prompt is computed whole, or nothing could be said of it.
    ignored("t_max_prompt_ms", r#"{"type":"integer"}"#),
    ignored("timings_per_token", r#"{"type":"boolean"}"#),
    ignored("n_keep", r#"{"type":"integer"}"#),
    ignored("repeat_last_n", r#"{"type":"integer"}"#),
    honoured("n_probs", r#"{"type":"integer","minimum":0,"maximum":128}"#),
    refused("post_sampling_probs", "probabilities are those before sampling", &["false"]),
    honoured("n_cmpl", r#"{"type":"integer","minimum":1,"maximum":128}"#),
    refused("image_data", "only text is understood", &["[]"]),
];

const TEXT: &[FieldSpec] = &[honoured("prompt", PROMPT)];

/// The fields of it.
pub(crate) const COMPLETION: FieldTable = &[TEXT, OWN, FORMS, SAMPLING, SAMPLERS];

const GAP: &[FieldSpec] = &[
    honoured("input_prefix", r#"{"type":"string"}"#),
    honoured("input_suffix", r#"{"type":"string"}"#),
    honoured("input_extra", r#"{"type":["array","null"],"items":{"type":"object","required":["text"]}}"#),
    honoured("prompt", r#"{"type":["string","null"]}"#),
];

/// The fields of /infill.
pub(crate) const INFILL: FieldTable = &[GAP, OWN, FORMS, SAMPLING, SAMPLERS];

const EXTRA: FieldTable = &[&[honoured("filename", "{}"), honoured("text", "{}")]];

/// The endpoint.
pub(crate) async fn post(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    respond(app.work(move |app| begin(app, &call, &body, COMPLETION, text)).await?).await
}

/// POST /infill: a text between two others.
pub(crate) async fn infill(State(app): State<Arc<App>>, Posted { call, body }: Posted) -> Result<Response, ApiError> {
    respond(app.work(move |app| begin(app, &call, &body, INFILL, gap)).await?).await
}

async fn respond(mut of: ActiveLlamaCompletion) -> Result<Response, ApiError> {
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
        None => (nothing_whole(&of), None),
    };
    let response = with_ignored(response, &ignored);
    Ok(match told {
        Some(told) => told.on(response),
        None => response,
    })
}

/// What a prompt is made of.
enum LlamaPrompt {
    Texts(Vec<MixedPrompt>),
    Gap { before: String, behind: String, begun: String, files: Vec<FimFile> },
}

/// Reads the prompt of a body.
type ReadPrompt = fn(&mut Fields, &mut Vec<String>) -> Result<LlamaPrompt, ApiError>;

fn text(fields: &mut Fields, _: &mut Vec<String>) -> Result<LlamaPrompt, ApiError> {
    let prompt = fields.take("prompt");
    Ok(LlamaPrompt::Texts(MixedPrompt::list("prompt", fields.need("prompt", prompt)?)?))
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
    /// The ids of each for a model.
    ///
    /// # Errors
    /// A model that cannot take it.
    fn ids(&self, generator: &Generator) -> Result<Vec<Vec<u32>>, ApiError> {
        match self {
            LlamaPrompt::Texts(prompts) => {
                let texts = generator.model().texts();
                prompts.iter().map(|prompt| prompt.ids(texts)).collect()
            }
            LlamaPrompt::Gap { before, behind, begun, files } => {
                Ok(vec![Gap { before, behind, begun, files }.prompt(generator.texts()?, "input_prefix")?])
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
    let mut asked = suggested.read(&mut fields)?;
    if let Some(n) = fields.whole::<u32>("n_cmpl", "a whole number from 1")? {
        if !(1..=MAX_CHOICES as u32).contains(&n) {
            return Err(
                fields.error("n_cmpl", format_args!("{n} answers are asked for; 1 to {MAX_CHOICES} are supported"))
            );
        }
        asked.n = n;
    }
    let probabilities = fields.whole::<u32>("n_probs", "a whole number")?.filter(|most| *most > 0);
    if let Some(most) = probabilities.filter(|most| *most > MAX_LOGPROBS) {
        return Err(
            fields.error("n_probs", format_args!("{most} tokens are asked for; {MAX_LOGPROBS} are told at most"))
        );
    }
    asked.sampling.logprobs = probabilities;
    let most = fields.whole::<i64>("n_predict", "a whole number, -1 for as many as fit")?;
    let most = most.or(fields.whole::<i64>("max_tokens", "a whole number, -1 for as many as fit")?);
    // -1 and -2 are llama.cpp's words for as many as fit.
    asked.max_tokens = most.and_then(|most| u32::try_from(most).ok());
    let shape = shape(&mut fields)?;
    let mut ignored = std::mem::take(&mut asked.unread);
    let sent = prompt(&mut fields, &mut ignored)?;
    let grammar = Grammar::read(&mut fields, &mut ignored)?;
    fields.finish_answer(&mut ignored)?;
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
) -> Result<ActiveLlamaCompletion, ApiError> {
    let began = Instant::now();
    let mut fields = Fields::parse(body, table)?;
    let model = fields.text("model")?;
    let held = app.models.lease(model.as_deref())?;
    let generator = held.generator()?;
    let suggested = GenerationParams::suggested(generator.model().generation(), app.unique());
    let LlamaRequest { params: asked, sent, grammar, shape, mut ignored } = read(fields, suggested, prompt)?;
    let prompts = sent.ids(generator)?;
    let mut slot = shape.slot.map(|id| slot_key(id, generator, call)).transpose()?;
    let n = asked.n as usize;
    // A slot names what the cache has for all of the caller's prompts, and one answer.
    let nameless = !asked.cache_salt.is_empty() || !asked.cache_prompt || prompts.len() * n > 1;
    if slot.take_if(|_| nameless).is_some() {
        ignored.push("id_slot".into());
    }
    if prompts.iter().all(Vec::is_empty) && prompts.len() == 1 {
        // Clients ask so whether the server is there, and to have it warm.
        return Ok(ActiveLlamaCompletion { turns: None, lease: held, prompts, n, shape, slot, began, ignored });
    }
    let compiled = grammar.compile(generator)?;
    let sent = Prompts::of_tokens(&prompts);
    let streams = start(app, call, &held, sent, &asked, &Arc::default(), &|| compiled.constraint())?;
    let turns = Some(Turns::new(streams, asked.n, || Speaker::plain(&asked.stops, &asked.stop_ids, true)));
    Ok(ActiveLlamaCompletion { turns, lease: held, prompts, n, shape, slot, began, ignored })
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
