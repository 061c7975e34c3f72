//! POST /completion and /infill: llama.cpp's own forms of continuing a text and of filling one in.

use crate::app::App;
use crate::call::{Call, Posted};
use crate::error::ApiError;
use crate::fields::{Field, Fields, Table, honoured, ignored, refused};
use crate::fim::{File, Gap};
use crate::generate::{Asked, End, Ending, SAMPLING, Said, Speaker, StopCause, Turns, start};
use crate::grammar::{FORMS, Grammar};
use crate::models::Generator;
use crate::prompt::{Encoding, Prompt, prompts};
use crate::reply::{self, with_ignored};
use crate::response_parser::Piece;
use crate::sse::{self, Framing, Gone, Writer};
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

const OWN: &[Field] = &[
    honoured("model", r#"{"type":["string","null"]}"#),
    honoured("n_predict", r#"{"type":"integer"}"#),
    honoured("max_tokens", r#"{"type":"integer"}"#),
    honoured("stream", r#"{"type":"boolean"}"#),
    honoured("repeat_penalty", r#"{"type":"number","minimum":0.01,"maximum":100}"#),
    honoured("return_tokens", r#"{"type":"boolean"}"#),
    ignored("id_slot", r#"{"type":"integer"}"#),
    ignored("timings_per_token", r#"{"type":"boolean"}"#),
    ignored("n_keep", r#"{"type":"integer"}"#),
    ignored("repeat_last_n", r#"{"type":"integer"}"#),
    refused("n_probs", "use /v1/completions with `logprobs`", &["0"]),
    refused("samplers", "the order of samplers is fixed", &[]),
    refused("image_data", "only text is understood", &["[]"]),
    refused("lora", "there are no adapters", &["[]"]),
    refused("n_indent", "text is not shaped", &["0"]),
    refused("t_max_predict_ms", "give a number of tokens", &["0"]),
];

const TEXT: &[Field] = &[honoured("prompt", r#"{"anyOf":[{"type":"string"},{"type":"array","minItems":1}]}"#)];

/// The fields of it.
pub(crate) const COMPLETION: Table = &[TEXT, OWN, FORMS, SAMPLING];

const GAP: &[Field] = &[
    honoured("input_prefix", r#"{"type":"string"}"#),
    honoured("input_suffix", r#"{"type":"string"}"#),
    honoured("input_extra", r#"{"type":["array","null"],"items":{"type":"object","required":["text"]}}"#),
    honoured("prompt", r#"{"type":["string","null"]}"#),
];

/// The fields of /infill.
pub(crate) const INFILL: Table = &[GAP, OWN, FORMS, SAMPLING];

const EXTRA: Table = &[&[honoured("filename", "{}"), honoured("text", "{}")]];

struct Completion {
    turns: Turns,
    prompt: Vec<u32>,
    stream: bool,
    tokens: bool,
    ignored: Vec<String>,
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
    of.turns.first().await?;
    let ignored = std::mem::take(&mut of.ignored);
    let response = match of.stream {
        true => sse::stream(Framing::Events, |writer| stream(of, writer)),
        false => whole(of).await?,
    };
    Ok(with_ignored(response, &ignored))
}

/// What a prompt is made of.
enum Sent {
    Text(Vec<Prompt>),
    Gap { before: String, behind: String, begun: String, files: Vec<File> },
}

/// Reads the prompt of a body.
type ReadPrompt = fn(&mut Fields, &mut Vec<String>) -> Result<Sent, ApiError>;

fn text(fields: &mut Fields, _: &mut Vec<String>) -> Result<Sent, ApiError> {
    let prompt = fields.take("prompt");
    Ok(Sent::Text(prompts("prompt", fields.need("prompt", prompt)?, 1)?))
}

fn gap(fields: &mut Fields, ignored: &mut Vec<String>) -> Result<Sent, ApiError> {
    let (before, behind) = (fields.text("input_prefix")?, fields.text("input_suffix")?);
    let before = fields.need("input_prefix", before)?;
    let behind = fields.need("input_suffix", behind)?;
    let begun = fields.text("prompt")?.unwrap_or_default();
    let mut files = Vec::new();
    for (at, extra) in fields.list("input_extra")?.unwrap_or_default().into_iter().enumerate() {
        let mut extra = Fields::within(extra, EXTRA, &format!("input_extra[{at}]"))?;
        let (name, text) = (extra.text("filename")?, extra.text("text")?);
        files.push(File { name: name.unwrap_or_else(|| "tmp".into()), text: extra.need("text", text)? });
        extra.finish_into(ignored)?;
    }
    Ok(Sent::Gap { before, behind, begun, files })
}

impl Sent {
    /// Its ids for a model.
    ///
    /// # Errors
    /// A model that cannot take it.
    fn ids(&self, generator: &Generator) -> Result<Vec<u32>, ApiError> {
        match self {
            Sent::Text(prompts) => {
                let texts = generator.model().texts();
                let ids = prompts
                    .iter()
                    .map(|prompt| prompt.ids(texts, Encoding::default()))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(ids.concat())
            }
            Sent::Gap { before, behind, begun, files } => {
                Gap { before, behind, begun, files }.prompt(generator.texts()?, "input_prefix")
            }
        }
    }
}

/// What a body asks of its model.
struct Read {
    asked: Asked,
    sent: Sent,
    grammar: Grammar,
    tokens: bool,
    stream: bool,
    ignored: Vec<String>,
}

/// The fields of a body behind its model, over what that suggests.
fn read(mut fields: Fields, suggested: Asked, prompt: ReadPrompt) -> Result<Read, ApiError> {
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
    let tokens = fields.switch("return_tokens")?.unwrap_or(false);
    let stream = fields.switch("stream")?.unwrap_or(false);
    let mut ignored = Vec::new();
    let sent = prompt(&mut fields, &mut ignored)?;
    let grammar = Grammar::read(&mut fields, &mut ignored)?;
    fields.finish_into(&mut ignored)?;
    Ok(Read { asked, sent, grammar, tokens, stream, ignored })
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

fn checked(body: &[u8], table: Table, prompt: ReadPrompt) -> Result<Vec<String>, ApiError> {
    let mut fields = Fields::parse(body, table)?;
    fields.text("model")?;
    Ok(read(fields, Asked::unsuggested(), prompt)?.ignored)
}

fn begin(app: &App, call: &Call, body: &[u8], table: Table, prompt: ReadPrompt) -> Result<Completion, ApiError> {
    let mut fields = Fields::parse(body, table)?;
    let model = fields.text("model")?;
    let held = app.models.hold(model.as_deref())?;
    let generator = held.generator()?;
    let suggested = Asked::suggested(generator.model().generation(), app.unique());
    let Read { asked, sent, grammar, tokens, stream, ignored } = read(fields, suggested, prompt)?;
    let prompt = sent.ids(generator)?;
    let compiled = grammar.compile(generator)?;
    let streams =
        start(app, call, &held, std::slice::from_ref(&prompt), &asked, &Arc::default(), &|| compiled.constraint())?;
    let turns = Turns::new(streams, 1, || Speaker::plain(&asked.stops, &asked.stop_ids, tokens));
    Ok(Completion { turns, prompt, stream, tokens, ignored })
}

/// Text and ids of what was said, and the end where it is one.
fn parts(said: Said) -> (String, Vec<u32>, Option<Box<End>>) {
    let (pieces, tokens, end) = match said {
        Said::Pieces { pieces, tokens, .. } => (pieces, tokens, None),
        Said::Ended { pieces, tokens, end, .. } => (pieces, tokens, Some(end)),
        Said::Prompt { .. } => return (String::new(), Vec::new(), None),
    };
    let text = |piece| if let Piece::Content(text) = piece { text } else { String::new() };
    (pieces.into_iter().map(text).collect(), tokens.iter().map(|token| token.id).collect(), end)
}

async fn whole(mut of: Completion) -> Result<Response, ApiError> {
    let (mut text, mut ids, mut ended) = (String::new(), Vec::new(), None);
    while let Some(said) = of.turns.next().await? {
        let (more, tokens, end) = parts(said);
        text.push_str(&more);
        ids.extend(tokens);
        ended = end.or(ended);
    }
    let mut object = of.last(ended.as_deref());
    object["content"] = text.into();
    if of.tokens {
        object["tokens"] = json!(ids);
    }
    Ok(reply::json(&object))
}

async fn stream(mut of: Completion, writer: Writer) -> Result<(), Gone> {
    loop {
        let said = match of.turns.next_for(&writer).await? {
            Ok(Some(said)) => said,
            Ok(None) => return Ok(()),
            Err(error) => return writer.data(&error.openai()).await,
        };
        let (text, ids, end) = parts(said);
        let mut object = match &end {
            Some(end) => of.last(Some(end)),
            None => json!({"index": 0, "stop": false}),
        };
        object["content"] = text.into();
        if of.tokens {
            object["tokens"] = json!(ids);
        }
        writer.data(&object).await?;
    }
}

impl Completion {
    /// What the last object says.
    fn last(&self, end: Option<&End>) -> Value {
        let mut object = json!({
            "index": 0,
            "model": self.turns.held().entry.name(),
            "stop": true,
            "tokens": [],
            "tokens_evaluated": self.prompt.len(),
            "truncated": false,
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
        object["stopping_word"] =
            if let Some(StopCause::Text(text)) = &end.stop { text.as_str().into() } else { "".into() };
        object["tokens_predicted"] = usage.new_tokens.into();
        object["tokens_cached"] = usage.cached_tokens.into();
        let rate = |tokens: usize, seconds: f64| if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
        let (prefill, decode) = (finished.prefill.as_secs_f64(), finished.decode.as_secs_f64());
        let computed = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
        object["timings"] = json!({
            "prompt_n": computed,
            "prompt_ms": prefill * 1e3,
            "prompt_per_second": rate(computed, prefill),
            "predicted_n": usage.new_tokens,
            "predicted_ms": decode * 1e3,
            "predicted_per_second": rate(usage.new_tokens.saturating_sub(1), decode),
        });
        object
    }
}
