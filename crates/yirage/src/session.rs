//! A model that is loaded and ready.

use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use crate::locate::{locate, named};
use crate::options::Layers;
use crate::profiling::Profiling;
use crate::prompt_cache::PromptCache;
use crate::settings::EngineSettings;
use std::time::Instant;
use yirage_engine::{Engine, Notice};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_session::{LoadedEngine, ModelHandle, TextProcessor, why_no_pictures};

/// A model that takes jobs, and how it was called.
pub(crate) struct Session {
    /// How the user called the model.
    pub(crate) name: String,
    /// The model.
    pub(crate) model: ModelHandle,
    /// Milliseconds from the start of the process until all of this was ready.
    pub(crate) load_ms: f64,
    /// Where prompts are kept, if they are.
    pub(crate) prompt_cache: Option<PromptCache>,
    profiling: Option<Profiling>,
}

/// What a model is loaded for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SessionUse {
    /// What is known now.
    Once,
    /// Messages that are not known yet.
    Talk,
}

impl Session {
    /// Finds, opens and loads the model.
    ///
    /// # Errors
    /// Whatever is wrong with options, files or the device.
    pub(crate) fn load(layers: &Layers, console: &Console, started: Instant) -> Result<Session, CliFailure> {
        Session::of(EngineSettings::resolve(layers)?, SessionUse::Once, layers, console, started)
    }

    /// As [`Session::load`], for a conversation: pictures may come with any message.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn load_talk(layers: &Layers, console: &Console, started: Instant) -> Result<Session, CliFailure> {
        Session::of(EngineSettings::resolve(layers)?, SessionUse::Talk, layers, console, started)
    }

    fn of(
        mut settings: EngineSettings,
        used: SessionUse,
        layers: &Layers,
        console: &Console,
        started: Instant,
    ) -> Result<Session, CliFailure> {
        let located = locate(layers, console)?;
        let checkpoint = settings.lora.open(&located.path)?;
        let division = settings.check_division(&checkpoint, layers)?;
        if used == SessionUse::Talk && !settings.options.embedded {
            let refused = why_no_pictures(&checkpoint)?;
            settings.options.embedded = refused.is_none();
            refused.iter().for_each(|why| console.note(&format!("pictures will be refused: {why}")));
        }
        let (device, notes) = settings.open(layers)?;
        notes.iter().chain(&division).for_each(|note| console.note(note));
        let info = device.info();
        tracing::debug!(backend = info.backend, ordinal = info.ordinal, arch = info.arch, facts = ?info.facts, "device");
        // The last part of a path says which model it is; the rest would leave no room for the bar.
        let short = located.name.trim_end_matches('/').rsplit('/').next().unwrap_or(&located.name);
        let bar = console.progress(&format!("loading {short}"), checkpoint.total_bytes(), 0);
        let mut progress = |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        };
        let profiling = Profiling::begin(layers, &*device)?;
        let prompt_cache = PromptCache::resolve(layers, &checkpoint, console)?;
        let (packs, began) = (device.packing().is_some(), Instant::now());
        let loaded = LoadedEngine::load(&checkpoint, device, &settings.options, &mut progress);
        bar.finish_and_clear();
        let mut loaded = loaded?;
        match &settings.draft {
            Some(draft) => load_draft(&mut loaded, draft, layers, console)?,
            None if layers.raw_value("draft-model").is_some() => {
                console.note(&format!("{} is not used", layers.label("draft-model")));
            }
            None => {}
        }
        let facts = loaded.engine.facts();
        if let (true, Some(packed), None) = (packs, &settings.options.packed, &facts.packed_weights) {
            console.detail(&format!(
                "repacked the weights for this processor: {} in {:.1} s; later starts find them in {}",
                bytes(facts.bytes.weights),
                began.elapsed().as_secs_f64(),
                packed.folder.display()
            ));
        }
        loaded.generation.ignored.iter().for_each(|what| console.note(what));
        say_notices(&mut loaded.engine, console);
        let (facts, plans) = (loaded.engine.facts(), loaded.engine.plan_counts());
        tracing::debug!(
            architecture = facts.architecture,
            vocabulary = facts.vocabulary,
            context = facts.context,
            kv = facts.kv.info().name,
            weight_bytes = facts.bytes.weights,
            cache_bytes = facts.bytes.cache,
            arena_bytes = facts.bytes.arena,
            draft_bytes = loaded.engine.draft_bytes().map_or(0, |bytes| bytes.total()),
            draft_max = settings.options.speculation.most,
            lookup = settings.options.speculation.lookup,
            packed_weights = ?facts.packed_weights,
            plans_compiled = plans.compiled,
            plans_read = plans.read,
            "ready"
        );
        if facts.kv == Format::Q8_0 && facts.biased_keys {
            console.note(&format!(
                "{}: keys of {} have biases, beside which q8_0 keeps the rest coarsely: expect somewhat worse answers \
                 than with bf16",
                layers.label("kv-type"),
                facts.architecture,
            ));
        }
        if facts.context > facts.trained_context && !facts.dynamic_rope {
            let (context, trained) = (facts.context, facts.trained_context);
            console.note(&format!(
                "the context of {context} exceeds the {trained} the model was made for: expect nonsense"
            ));
        }
        let load_ms = started.elapsed().as_secs_f64() * 1e3;
        Ok(Session { name: located.name, model: loaded.start()?, load_ms, prompt_cache, profiling })
    }

    /// Writes the profile, if one was asked for.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn write_profile(&self, console: &Console) -> Result<(), CliFailure> {
        self.profiling.as_ref().map_or(Ok(()), |profiling| profiling.write(console))
    }

    /// What remains to be done when the last result is out: writes the repacked weights that the next start will map,
    /// where that is not done yet. No result depends on it.
    ///
    /// # Errors
    /// An engine that has ended by itself.
    pub(crate) fn settle(self, console: &Console) -> Result<(), CliFailure> {
        let mut engine = self.model.stop()?.engine;
        let mut bar = None;
        engine.settle(&mut |done, total| {
            const WHAT: &str = "keeping repacked weights for the next start";
            bar.get_or_insert_with(|| console.progress(WHAT, total, done)).set_position(done);
        });
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        say_notices(&mut engine, console);
        Ok(())
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// [`CliFailure::Other`] naming the model and `instead`, an option that takes ids.
    pub(crate) fn texts(&self, instead: &str) -> Result<&TextProcessor, CliFailure> {
        let missing = || format!("{}: the model has no tokenizer; give token ids with {instead}", self.name);
        self.model.texts().ok_or_else(|| CliFailure::Other(missing()))
    }
}

/// Says what became known of the repacked weights.
fn say_notices(engine: &mut Engine, console: &Console) {
    for notice in engine.notices() {
        match notice {
            Notice::Variant(_) => console.detail(&notice.to_string()),
            _ => console.note(&notice.to_string()),
        }
    }
}

/// Loads the model that guesses.
fn load_draft(loaded: &mut LoadedEngine, name: &str, layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let located = named(name, layers, console)?;
    let checkpoint = Checkpoint::open(&located.path)?;
    let bar = console.progress("loading the draft model", checkpoint.total_bytes(), 0);
    let drafted = loaded.load_draft(&checkpoint, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    Ok(drafted?)
}
