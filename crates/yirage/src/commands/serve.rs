//! `yirage serve`: models over HTTP.

use crate::console::Console;
use crate::failure::Failure;
use crate::locate::{locate, named};
use crate::options::Layers;
use crate::settings::{EncoderSettings, EngineSettings, is_encoder, serve, serve_engine};
use serde_json::json;
use std::sync::Arc;
use yirage_engine::{EncoderOptions, EngineOptions, ModelFacts, Notice};
use yirage_hal::Device;
use yirage_model::Checkpoint;
use yirage_serve::{Generator, ModelEntry, Opener, Served, Server};
use yirage_session::{Found, Loaded, TextEncoder};

/// What every model of the server is opened with.
struct Opening {
    device: Arc<dyn Device>,
    engine: EngineOptions,
    encoder: EncoderOptions,
    template: Option<String>,
    console: Console,
}

impl Opening {
    /// Says what the owner of a model should know of its load.
    fn tell(&self, model: &str, notices: &[Notice]) {
        notices.iter().for_each(|notice| self.console.note(&format!("{model}: {notice}")));
    }
}

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, models or the device; an address that cannot be listened to.
pub(crate) fn run(layers: &Layers, console: &Console, models: &[String]) -> Result<(), Failure> {
    let (options, notes) = serve(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let settings = EngineSettings::resolve(layers)?;
    let engine = serve_engine(layers, settings.options.clone())?;
    tracing::debug!(max_seqs = engine.max_seqs, max_step = ?engine.max_step, cache = ?engine.cache, "engine");
    let found: Vec<Found> = match models {
        [] => vec![locate(layers, console)?],
        names => names.iter().map(|name| named(name, layers, console)).collect::<Result<_, _>>()?,
    };
    let names = found.iter().map(|model| names(layers, model, found.len())).collect::<Result<Vec<_>, _>>()?;
    unknown_names(layers, &found)?;
    let (device, notes) = settings.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let template = layers.text("chat-template").map(str::to_owned);
    let encoder = EncoderSettings::resolve(layers)?.options;
    let opening = Arc::new(Opening { device, engine, encoder, template, console: *console });
    let mut entries = Vec::new();
    for (found, names) in found.iter().zip(&names) {
        entries.push(entry(found, names.clone(), settings.draft.as_deref(), &opening, layers, console)?);
    }
    let at_start = options.memory.is_none();
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let server = Server::bind(options, entries)?;
    if at_start {
        let first: Vec<String> = names.iter().filter_map(|names| names.first().cloned()).collect();
        console.note(&format!("loading {}", first.join(", ")));
        server.open(&first).map_err(Failure::Other)?;
    }
    let address = format!("{scheme}://{}", server.address());
    let server = server.until_signal()?;
    match console.json {
        true => console.value(&json!({"address": address, "models": names}))?,
        false => console.line(&format!("listening at {address}"))?,
    }
    let drained = server.run()?;
    if drained.cut > 0 {
        console.note(&format!("{} requests were cut off at the deadline", drained.cut));
    }
    Ok(())
}

/// The names of a model: those of the option, else as it was given and the last part of that.
fn names(layers: &Layers, model: &Found, models: usize) -> Result<Vec<String>, Failure> {
    let given = layers.texts("served-model-name");
    if models == 1 && !given.is_empty() {
        return Ok(given.to_vec());
    }
    let mut names = Vec::new();
    for name in given {
        let Some((name, of)) = name.split_once('=') else {
            let expected = "NAME=MODEL, since there are several models";
            return Err(Failure::Usage(format!(
                "{}: expected {expected}, not {name:?}",
                layers.label("served-model-name")
            )));
        };
        if of == model.name {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        names.push(model.name.clone());
        let short = model.name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if short != model.name && !short.is_empty() {
            names.push(short.to_owned());
        }
    }
    Ok(names)
}

/// What a server says of the context that a model was opened with.
fn context(facts: &ModelFacts) -> String {
    let (context, trained) = (facts.context, facts.trained_context);
    match context < trained {
        true => {
            format!("{context} positions of the {trained} that it was made for; --context or --kv-memory give more")
        }
        false => format!("{context} positions"),
    }
}

/// Refuses names of models that are not served.
fn unknown_names(layers: &Layers, found: &[Found]) -> Result<(), Failure> {
    if found.len() == 1 {
        return Ok(());
    }
    let of = |name: &'_ String| name.split_once('=').map(|(_, of)| of.to_owned());
    let unknown =
        layers.texts("served-model-name").iter().filter_map(of).find(|of| found.iter().all(|model| model.name != *of));
    match unknown {
        Some(of) => Err(Failure::Usage(format!("{}: {of:?} is none of the models", layers.label("served-model-name")))),
        None => Ok(()),
    }
}

fn entry(
    found: &Found,
    names: Vec<String>,
    draft: Option<&str>,
    opening: &Arc<Opening>,
    layers: &Layers,
    console: &Console,
) -> Result<ModelEntry, Failure> {
    let checkpoint = Checkpoint::open(&found.path)?;
    // An architecture that is not supported is said now, not to the first client.
    let encodes = is_encoder(&checkpoint)?;
    let bytes = checkpoint.total_bytes();
    let (name, path, opening) = (found.name.clone(), found.path.clone(), opening.clone());
    let draft = match draft.filter(|_| !encodes) {
        Some(draft) => Some(named(draft, layers, console)?.path),
        None => None,
    };
    let open: Opener = Box::new(move || {
        let checkpoint = Checkpoint::open(&path).map_err(|e| e.to_string())?;
        let progress = &mut |_, _| {};
        if encodes {
            let encoder = TextEncoder::load(&checkpoint, opening.device.clone(), &opening.encoder, progress);
            let encoder = encoder.map_err(|e| e.to_string())?;
            opening.tell(&name, encoder.notices());
            return Ok(Served::Encoder(Box::new(encoder)));
        }
        let load = || {
            let mut loaded = Loaded::load(&checkpoint, opening.device.clone(), &opening.engine, &mut |_, _| {})?;
            if let Some(draft) = &draft {
                loaded.load_draft(&Checkpoint::open(draft)?, &mut |_, _| {})?;
            }
            opening.tell(&name, &loaded.engine.notices());
            opening.console.note(&format!("{name}: {}", context(loaded.engine.facts())));
            Generator::new(loaded.start()?, opening.engine.max_seqs as usize, opening.template.as_deref())
        };
        load().map(|generator| Served::Generator(Box::new(generator))).map_err(|e| e.to_string())
    });
    Ok(ModelEntry::new(names, bytes, open))
}
