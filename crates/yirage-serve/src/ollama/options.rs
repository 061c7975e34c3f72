//! How ollama's clients ask for tokens: `options`, `format`, `keep_alive`.

use crate::app::App;
use crate::error::ApiError;
use crate::fields::{FieldSpec, FieldTable, Fields, honoured, ignored, refused};
use crate::generate::{GenerationParams, SAMPLERS, read_typical_and_mirostat, unread};
use crate::grammar::{Grammar, GrammarKind};
use serde_json::{Value, json};

/// The fields that every request has.
pub(super) const SHARED: &[FieldSpec] = &[
    honoured("model", r#"{"type":"string"}"#),
    honoured("stream", r#"{"type":["boolean","null"]}"#),
    honoured("format", r#"{"anyOf":[{"type":["string","null"]},{"type":"object"}]}"#),
    honoured("options", r#"{"type":["object","null"]}"#),
    honoured("think", r#"{"type":["boolean","string","null"]}"#),
    honoured("keep_alive", r#"{"type":["string","number","null"]}"#),
    refused("logprobs", "use /v1/chat/completions", &["false"]),
    refused("top_logprobs", "use /v1/chat/completions", &["0"]),
    refused("images", "only text is understood", &["[]"]),
    ignored("truncate", r#"{"type":"boolean"}"#),
    ignored("shift", r#"{"type":"boolean"}"#),
];

const OPTIONS: FieldTable = &[&[
    honoured("temperature", "{}"),
    honoured("top_k", "{}"),
    honoured("top_p", "{}"),
    honoured("min_p", "{}"),
    honoured("seed", "{}"),
    honoured("num_predict", "{}"),
    honoured("stop", "{}"),
    honoured("repeat_penalty", "{}"),
    honoured("presence_penalty", "{}"),
    honoured("frequency_penalty", "{}"),
    honoured("num_ctx", "{}"),
    ignored("num_keep", "{}"),
    ignored("num_batch", "{}"),
    ignored("num_gpu", "{}"),
    ignored("main_gpu", "{}"),
    ignored("num_thread", "{}"),
    ignored("use_mmap", "{}"),
    ignored("use_mlock", "{}"),
    ignored("low_vram", "{}"),
    ignored("numa", "{}"),
    ignored("repeat_last_n", "{}"),
    honoured("typical_p", "{}"),
    refused("tfs_z", "give top_p or min_p", &["1", "1.0"]),
    honoured("mirostat", "{}"),
    honoured("mirostat_tau", "{}"),
    honoured("mirostat_eta", "{}"),
    ignored("penalize_newline", "{}"),
]];

/// The tokens that are asked for of a model with so long a context, over what it suggests, and the options that change
/// nothing.
///
/// # Errors
/// An option that makes no sense.
pub(super) fn read_options(
    suggested: GenerationParams,
    context: u32,
    fields: &mut Fields,
) -> Result<(GenerationParams, Vec<String>), ApiError> {
    let mut asked = suggested;
    let Some(mut options) = fields.fields("options", OPTIONS)? else { return Ok((asked, Vec::new())) };
    let sent = options.numbers_and(SAMPLERS);
    let sampling = &mut asked.sampling;
    let numbers = [
        ("temperature", &mut sampling.temperature),
        ("top_p", &mut sampling.top_p),
        ("min_p", &mut sampling.min_p),
        ("repeat_penalty", &mut sampling.repetition_penalty),
        ("presence_penalty", &mut sampling.presence_penalty),
        ("frequency_penalty", &mut sampling.frequency_penalty),
    ];
    for (name, place) in numbers {
        if let Some(value) = options.number(name)? {
            *place = value;
        }
    }
    if let Some(k) = options.whole("top_k", "a whole number, 0 for all")? {
        sampling.top_k = k;
    }
    read_typical_and_mirostat(&mut sampling.chain, &mut options)?;
    let unread = unread(sampling, &sent);
    options.leave_out("seed", &json!(-1));
    if let Some(seed) = options.whole::<i64>("seed", "a whole number")? {
        sampling.seed = seed as u64;
    }
    let most = options.whole::<i64>("num_predict", "a whole number, -1 for as many as fit")?;
    asked.max_tokens = most.and_then(|most| u32::try_from(most).ok()).filter(|most| *most > 0);
    asked.stops = options.texts("stop")?;
    // A client asks for room, not for an answer. A prompt that would need more than there is is refused for its length.
    let longer = options.whole::<u32>("num_ctx", "a whole number")?.is_some_and(|wanted| wanted > context);
    let mut ignored: Vec<String> = unread.into_iter().map(|name| format!("options.{name}")).collect();
    options.finish_answer(&mut ignored)?;
    ignored.extend(longer.then(|| "options.num_ctx".to_owned()));
    Ok((asked, ignored))
}

/// The form that `format` asks for.
///
/// # Errors
/// Another word than json.
pub(super) fn grammar(fields: &mut Fields) -> Result<Grammar, ApiError> {
    match fields.take("format") {
        None => Ok(Grammar::free()),
        Some(Value::String(word)) if word.is_empty() => Ok(Grammar::free()),
        Some(Value::String(word)) if word == "json" => Ok(Grammar::new(GrammarKind::Object, "format")),
        Some(schema @ Value::Object(_)) => Grammar::of_schema("format", schema),
        Some(_) => Err(ApiError::field("format", "`format`: expected json or a schema")),
    }
}

/// A model's name without the tag that clients put behind it.
pub(super) fn untagged(app: &App, name: Option<String>) -> Option<String> {
    let name = name?;
    let served = app.models.iter().any(|entry| entry.names().contains(&name));
    match name.strip_suffix(":latest") {
        Some(short) if !served => Some(short.to_owned()),
        _ => Some(name),
    }
}
