//! `yirage run`: one prompt, one answer; or a conversation, where nobody gives a prompt and somebody sits at a terminal.

use super::answer::show;
use super::chat;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::generate::{GenerationJob, generate};
use crate::interrupt::Interrupt;
use crate::options::Layers;
use crate::session::Session;
use crate::settings::{PromptSource, ResolvedSampling, template};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use yirage_engine::scheduler::FinishReason;
use yirage_session::PreparedPicture;
use yirage_session::{TextProcessor, message};

/// What a model is asked when nobody asks anything: a question for those that answer, a beginning for those that
/// continue.
const QUESTION: &str = "What is the capital of France, and what is it known for?";
const BEGINNING: &str = "Once upon a time";

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, model or device; [`CliFailure::Interrupted`] after an interrupted answer was printed.
pub(crate) fn run(layers: &Layers, console: &Console, started: Instant) -> Result<(), CliFailure> {
    let source = PromptSource::resolve(layers, console)?;
    if source == PromptSource::Conversation {
        return chat::run(layers, console, started);
    }
    let interrupt = Interrupt::install()?;
    let max_tokens = layers.number("max-tokens", "a whole number below 2^32", |_| true)?;
    let ignore_ends = layers.switch("ignore-eos")?;
    ResolvedSampling::check(layers)?;
    let session = Session::load(layers, console, started)?;
    let choosing = ResolvedSampling::resolve(layers, session.model.generation())?;
    choosing.notes().iter().for_each(|note| console.note(note));
    let pictures = pictures(&session, layers)?;
    let prompt = prompt_ids(&session, source, pictures.len(), layers, console)?;
    let (prompt, pictures) = match pictures.is_empty() {
        true => (prompt, Vec::new()),
        false => session.model.pictures()?.place(&prompt, pictures)?,
    };
    session.prompt_cache.iter().try_for_each(|cache| cache.restore(&session.model, console))?;
    let stop_ids = if ignore_ends { Vec::new() } else { session.model.ends().to_vec() };
    let asked = GenerationJob {
        prompt: prompt.clone(),
        pictures,
        max_tokens,
        stop_ids,
        stops: layers.texts("stop").to_vec(),
        sampling: choosing.params,
    };
    let stream = !console.json;
    let answer = generate(&session.model, asked, &interrupt, &mut |piece| {
        if stream { console.text(piece) } else { Ok(()) }
    })?;
    show(console, &session.name, &prompt, &answer, session.load_ms, false)?;
    session.write_profile(console)?;
    if let Some(cache) = &session.prompt_cache {
        cache.keep(&session.model, [prompt, answer.tokens].concat(), console)?;
    }
    if !matches!(answer.end.reason, FinishReason::Cancelled) {
        session.settle(console)?;
    }
    match answer.end.reason {
        FinishReason::Error(why) => Err(CliFailure::Other(why)),
        FinishReason::Cancelled => Err(CliFailure::Interrupted),
        _ => Ok(()),
    }
}

/// The pictures of `--image`.
fn pictures(session: &Session, layers: &Layers) -> Result<Vec<Arc<PreparedPicture>>, CliFailure> {
    let files = layers.texts("image");
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let reader = session.model.pictures()?;
    Ok(files.iter().map(|file| reader.open(Path::new(file))).collect::<Result<_, _>>()?)
}

/// What the user says behind so many pictures.
fn behind_pictures(pictures: usize, text: &str) -> Value {
    if pictures == 0 {
        return message("user", text);
    }
    let parts = std::iter::repeat_n(json!({"type": "image"}), pictures);
    let parts: Vec<Value> = parts.chain([json!({"type": "text", "text": text})]).collect();
    json!({"role": "user", "content": parts})
}

/// The prompt as ids, through the model's template where it has one and is not told otherwise.
fn prompt_ids(
    session: &Session,
    source: PromptSource,
    pictures: usize,
    layers: &Layers,
    console: &Console,
) -> Result<Vec<u32>, CliFailure> {
    let system = layers.text("system");
    let texts = match &source {
        PromptSource::Ids(ids) => return Ok(ids.clone()),
        _ => session.texts("--prompt-ids")?,
    };
    let template = template(texts, layers)?;
    let default = if template.is_some() { QUESTION } else { BEGINNING };
    let text = match source {
        PromptSource::Text(text) => text,
        _ => {
            console.note(&format!("prompt: {default}"));
            default.to_owned()
        }
    };
    match template {
        Some(template) => {
            let mut messages = Vec::new();
            messages.extend(system.map(|s| message("system", s)));
            messages.push(behind_pictures(pictures, &text));
            Ok(texts.encode_chat(&template, &messages)?)
        }
        None => {
            if !layers.switch("raw")? {
                console.note("the model has no chat template: it continues the prompt as it is");
            }
            if system.is_some() {
                console.note(&format!("{} is not used: there is no chat template", layers.label("system")));
            }
            raw_ids(texts, &text, layers)
        }
    }
}

fn raw_ids(texts: &TextProcessor, text: &str, layers: &Layers) -> Result<Vec<u32>, CliFailure> {
    Ok(texts.encode_raw(text, layers.maybe_switch("parse-special")?)?)
}
