//! `yirage serve`: models over HTTP.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::locate::{locate, named};
use crate::options::Layers;
use crate::ranks;
use crate::settings::{EncoderSettings, EngineSettings, LoraSettings, is_encoder, prefill_server, serve, serve_engine};
use serde_json::json;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_engine::{EncoderOptions, EngineOptions, ModelFacts};
use yirage_hal::Device;
use yirage_model::Checkpoint;
use yirage_serve::{
    AdapterFiles, Description, Generator, ModelEntry, ModelOpener, PrefillServer, Served, Server, SlotFiles,
};
use yirage_session::{LoadedEngine, LocalModel, ModelFingerprint, SessionError, TextEncoder, why_no_pictures};

/// What every model of the server is opened with.
struct ModelOpenOptions {
    device: Arc<dyn Device>,
    engine: EngineOptions,
    encoder: EncoderOptions,
    template: Option<String>,
    /// The folder that slots are written to.
    slots: Option<PathBuf>,
    /// Who computes long prompts.
    prefill: Option<PrefillServer>,
    lora: LoraSettings,
    /// The folder of adapters that clients may load.
    adapters: Option<PathBuf>,
    console: Console,
    /// The exit code and kind of the failure of the model that could not be opened last.
    failed: Mutex<Option<(u8, &'static str)>>,
}

impl ModelOpenOptions {
    /// What a server says of a model that cannot be opened, whose exit code is kept for the end of a start.
    fn unopened<E: Display + Into<CliFailure>>(&self, error: E) -> String {
        let why = error.to_string();
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.into().code());
        why
    }

    /// How a start ends whose model could not be opened.
    fn failure(&self, why: String) -> CliFailure {
        let code = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        match code {
            Some(code) => CliFailure::Unopened(why, code),
            None => CliFailure::Other(why),
        }
    }

    /// Says what the owner of a model should know of its load.
    fn print_notices(&self, model: &str, notices: &[impl std::fmt::Display]) {
        notices.iter().for_each(|notice| self.console.note(&format!("{model}: {notice}")));
    }
}

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, models or the device; an address that cannot be listened to.
pub(crate) fn run(layers: &Layers, console: &Console, models: &[String]) -> Result<(), CliFailure> {
    let (options, notes) = serve(layers)?;
    notes.iter().for_each(|note| console.note(note));
    // Nothing is fetched for a server that may not listen.
    Server::check_access(&options)?;
    let settings = EngineSettings::resolve(layers)?;
    let engine = serve_engine(layers, settings.options.clone())?;
    tracing::debug!(max_seqs = engine.max_seqs, max_step = ?engine.max_step, cache = ?engine.cache, "engine");
    let found: Vec<LocalModel> = match models {
        [] => vec![locate(layers, console)?],
        names => names.iter().map(|name| named(name, layers, console)).collect::<Result<_, _>>()?,
    };
    let names = found.iter().map(|model| names(layers, model, found.len())).collect::<Result<Vec<_>, _>>()?;
    unknown_names(layers, &found)?;
    double_names(layers, &names)?;
    if let (true, [adapter, ..]) = (found.len() > 1, &settings.lora.adapters[..]) {
        let what = format!("{:?} is for one model, and {} are served", adapter.name, found.len());
        return Err(CliFailure::Usage(format!("--lora: {what}")));
    }
    for model in &found {
        let division = settings.check_division(&Checkpoint::open(&model.path)?, layers)?;
        division.iter().for_each(|note| console.note(&format!("{}: {note}", model.name)));
    }
    let (device, notes) = settings.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let template = layers.text("chat-template").map(str::to_owned);
    let encoder = EncoderSettings::resolve(layers)?.options;
    let slots = layers.text("slot-save-path").map(PathBuf::from);
    if let Some(missing) = slots.as_ref().filter(|folder| !folder.is_dir()) {
        let what = format!("expected a folder, got {}; make it first", missing.display());
        return Err(CliFailure::Usage(format!("{}: {what}", layers.label("slot-save-path"))));
    }
    let (draft, lora, prefill) = (settings.draft, settings.lora, prefill_server(layers)?);
    let adapters = layers.text("lora-path").map(PathBuf::from);
    if let (true, Some(folder)) = (lora.merge, &adapters) {
        let what = format!("adapters that are merged cannot be changed, so none are loaded of {}", folder.display());
        return Err(CliFailure::Usage(format!("{}: {what}", layers.label("lora-merge"))));
    }
    let opening = Arc::new(ModelOpenOptions {
        device,
        engine,
        encoder,
        template,
        slots,
        prefill,
        lora,
        adapters,
        console: *console,
        failed: Mutex::default(),
    });
    let mut entries = Vec::new();
    for (found, names) in found.iter().zip(&names) {
        entries.push(entry(found, names.clone(), draft.as_deref(), &opening, layers, console)?);
    }
    let at_start = options.memory.is_none();
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let server = Server::bind(options, entries)?;
    if at_start {
        let first: Vec<String> = names.iter().filter_map(|names| names.first().cloned()).collect();
        console.note(&format!("loading {}", first.join(", ")));
        server.open(&first).map_err(|why| opening.failure(why))?;
    }
    let address = format!("{scheme}://{}", server.address());
    let server = server.until_signal()?;
    let breaker = server.breaker();
    let on_end = breaker.clone();
    ranks::on_end(move |why| on_end.trip(why));
    match console.json {
        true => console.value(&json!({"address": address, "models": names}))?,
        false => console.line(&format!("listening at {address}"))?,
    }
    let drained = server.run()?;
    if drained.cut > 0 {
        console.note(&format!("{} requests were cut off at the deadline", drained.cut));
    }
    match breaker.tripped() {
        Some(why) => Err(CliFailure::Ranks(format!("the server has ended: {why}"))),
        None => Ok(()),
    }
}

/// The names of a model: those of the option, else what it is called ([`own_names`]).
fn names(layers: &Layers, model: &LocalModel, models: usize) -> Result<Vec<String>, CliFailure> {
    let given = layers.texts("served-model-name");
    if models == 1 && !given.is_empty() {
        return Ok(given.to_vec());
    }
    let mut names = Vec::new();
    for name in given {
        let Some((name, of)) = name.split_once('=') else {
            let expected = "NAME=MODEL, since there are several models";
            return Err(CliFailure::Usage(format!(
                "{}: expected {expected}, not {name:?}",
                layers.label("served-model-name")
            )));
        };
        if of == model.name {
            names.push(name.to_owned());
        }
    }
    Ok(if names.is_empty() { own_names(model) } else { names })
}

/// What a model is called where nobody says how. Clients see it, so nothing of the place of a file is in it: a file is
/// called by its name, without and with what tells its kind, and a folder by its own, or by its repository's where it is one
/// of a hub's cache. A model of the catalogue or the hub is called as it was given, and by the last part of that.
fn own_names(model: &LocalModel) -> Vec<String> {
    let is_path = Path::new(&model.name).exists();
    let called = if is_path { name_of_path(&model.path) } else { Some(model.name.trim_end_matches('/').to_owned()) };
    let first = called.filter(|name| !name.is_empty()).unwrap_or_else(|| "model".to_owned());
    let last = first.rsplit('/').next().unwrap_or_default().to_owned();
    let file = model.path.file_name().filter(|_| is_path && model.path.is_file());
    let file = file.map(|name| name.to_string_lossy().into_owned());
    let mut names = vec![first];
    for more in [Some(last), file].into_iter().flatten() {
        if !more.is_empty() && !names.contains(&more) {
            names.push(more);
        }
    }
    names
}

/// The name of a file or folder.
fn name_of_path(path: &Path) -> Option<String> {
    // `.` and the like have a name of their own elsewhere.
    let path = std::path::absolute(path).ok()?.components().collect::<PathBuf>();
    let path = if path.file_name().is_none() || path.ends_with("..") { path.canonicalize().ok()? } else { path };
    let text = |part: Option<&std::ffi::OsStr>| part.map(|name| name.to_string_lossy().into_owned());
    if path.is_file() {
        let stem = text(path.file_stem())?;
        // `NAME-00001-of-00003` is the first part of NAME.
        let parts: Vec<&str> = stem.rsplitn(4, '-').collect();
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        return Some(match parts[..] {
            [of, "of", at, name] if number(of) && number(at) => name.to_owned(),
            _ => stem,
        });
    }
    // `models--ORG--NAME/snapshots/COMMIT` of a hub's cache.
    let above = path.parent().filter(|above| above.ends_with("snapshots")).and_then(Path::parent);
    let repository = text(above.and_then(Path::file_name));
    let repository = repository.as_deref().and_then(|name| name.strip_prefix("models--"));
    repository.map(|name| name.replacen("--", "/", 1)).or_else(|| text(path.file_name()))
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
fn unknown_names(layers: &Layers, found: &[LocalModel]) -> Result<(), CliFailure> {
    if found.len() == 1 {
        return Ok(());
    }
    let of = |name: &'_ String| name.split_once('=').map(|(_, of)| of.to_owned());
    let unknown =
        layers.texts("served-model-name").iter().filter_map(of).find(|of| found.iter().all(|model| model.name != *of));
    match unknown {
        Some(of) => {
            Err(CliFailure::Usage(format!("{}: {of:?} is none of the models", layers.label("served-model-name"))))
        }
        None => Ok(()),
    }
}

/// Refuses two models of one name, of which clients would reach the first alone.
fn double_names(layers: &Layers, names: &[Vec<String>]) -> Result<(), CliFailure> {
    let firsts: Vec<&String> = names.iter().filter_map(|names| names.first()).collect();
    match firsts.iter().enumerate().find(|(at, name)| firsts[..*at].contains(name)) {
        Some((_, name)) => Err(CliFailure::Usage(format!(
            "two models are called {name:?}; name them with {} NAME=MODEL",
            layers.label("served-model-name")
        ))),
        None => Ok(()),
    }
}

fn entry(
    found: &LocalModel,
    names: Vec<String>,
    draft: Option<&str>,
    opening: &Arc<ModelOpenOptions>,
    layers: &Layers,
    console: &Console,
) -> Result<ModelEntry, CliFailure> {
    let checkpoint = Checkpoint::open(&found.path)?;
    // An architecture that is not supported is said now, not to the first client.
    let encodes = is_encoder(&checkpoint)?;
    let (bytes, description) = (checkpoint.total_bytes(), Description::of(&checkpoint));
    let adapters = opening.engine.adapters.iter().map(|adapter| adapter.name.clone()).collect();
    let (name, path, opening) = (found.name.clone(), found.path.clone(), opening.clone());
    let draft = match draft.filter(|_| !encodes) {
        Some(draft) => Some(named(draft, layers, console)?.path),
        None => None,
    };
    let open: ModelOpener = Box::new(move || {
        let checkpoint = opening.lora.open(&path).map_err(|e| opening.unopened(e))?;
        let progress = &mut |_, _| {};
        if encodes {
            let encoder = TextEncoder::load(&checkpoint, opening.device.clone(), &opening.encoder, progress);
            let encoder = encoder.map_err(|e| opening.unopened(e))?;
            opening.print_notices(&name, encoder.notices());
            return Ok(Served::Encoder(Box::new(encoder)));
        }
        let load = || {
            // A model whose pictures cannot be read answers texts.
            let refused = why_no_pictures(&checkpoint)?;
            let told: Vec<String> = refused.iter().map(|why| format!("pictures will be refused: {why}")).collect();
            opening.print_notices(&name, &told);
            let engine =
                EngineOptions { embedded: opening.engine.embedded && refused.is_none(), ..opening.engine.clone() };
            let mut loaded = LoadedEngine::load(&checkpoint, opening.device.clone(), &engine, &mut |_, _| {})?;
            if let Some(draft) = &draft {
                loaded.load_draft(&Checkpoint::open(draft)?, &mut |_, _| {})?;
            }
            opening.print_notices(&name, &loaded.generation.ignored);
            opening.print_notices(&name, &loaded.engine.notices());
            opening.console.note(&format!("{name}: {}", context(loaded.engine.facts())));
            let seqs = opening.engine.max_seqs as usize;
            let generator = Generator::new(loaded.start()?, seqs, opening.template.as_deref())?;
            let generator = match &opening.adapters {
                Some(folder) => {
                    let files = AdapterFiles { folder: folder.clone(), model: path.clone() };
                    generator.with_adapter_files(files)
                }
                None => generator,
            };
            let model = ModelFingerprint::of(&checkpoint)?;
            let generator = match &opening.slots {
                Some(folder) => generator.with_slot_files(SlotFiles { folder: folder.clone(), model }),
                None => generator,
            };
            let generator = generator.with_fingerprint(model);
            Ok::<_, SessionError>(match &opening.prefill {
                Some(server) => generator.with_prefill_server(server.clone()),
                None => generator,
            })
        };
        load().map(|generator| Served::Generator(Box::new(generator))).map_err(|e| opening.unopened(e))
    });
    Ok(ModelEntry::new(names, bytes, open).described(description).with_adapters(adapters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_nothing_of_places() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let snapshot = at("hub/models--Org--Name-1B/snapshots/0123abc");
        for inner in [&snapshot, &at("models/Tiny Model"), &at("models/v1.5")] {
            std::fs::create_dir_all(inner).unwrap();
        }
        for file in ["models/a.gguf", "models/b-Q4_K_M-00001-of-00003.gguf", "models/v1.5-00002-of-x.gguf"] {
            std::fs::write(at(file), "").unwrap();
        }
        let names = |path: PathBuf| {
            own_names(&LocalModel { name: path.to_string_lossy().into_owned(), path: path.clone(), fetched: false })
        };
        assert_eq!(names(at("models/a.gguf")), ["a", "a.gguf"]);
        assert_eq!(names(at("models/../models/./a.gguf")), ["a", "a.gguf"]);
        let first = "b-Q4_K_M-00001-of-00003.gguf";
        assert_eq!(names(at("models").join(first)), ["b-Q4_K_M", first]);
        assert_eq!(names(at("models/v1.5-00002-of-x.gguf")), ["v1.5-00002-of-x", "v1.5-00002-of-x.gguf"]);
        assert_eq!(names(at("models/Tiny Model/")), ["Tiny Model"]);
        assert_eq!(names(at("models/v1.5")), ["v1.5"]);
        assert_eq!(names(at("models/v1.5/..")), ["models"]);
        assert_eq!(names(snapshot), ["Org/Name-1B", "Name-1B"]);
        // One of the hub or the catalogue has no place in its name.
        let of_hub = LocalModel { name: "hf:org/model".into(), path: at("models/a.gguf"), fetched: false };
        assert_eq!(own_names(&of_hub), ["hf:org/model", "model"]);
    }
}
