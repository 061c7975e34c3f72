//! A model that is loaded and ready.

use crate::console::{Console, bytes};
use crate::failure::Failure;
use crate::model::{Texts, locate, named};
use crate::options::Layers;
use crate::settings::EngineSettings;
use std::time::Instant;
use yirage_engine::Engine;
use yirage_ir::Format;
use yirage_model::{Checkpoint, GenerationConfig, RawConfig};

/// An engine with the model's texts and suggestions.
pub(crate) struct Session {
    /// How the user called the model.
    pub(crate) name: String,
    /// The engine.
    pub(crate) engine: Engine,
    /// Tokenizer and template, where the model has them.
    pub(crate) texts: Option<Texts>,
    /// What the model's makers suggest.
    pub(crate) generation: GenerationConfig,
    /// Milliseconds from the start of the process until all of this was ready.
    pub(crate) load_ms: f64,
}

impl Session {
    /// Finds, opens and loads the model.
    ///
    /// # Errors
    /// Whatever is wrong with options, files or the device.
    pub(crate) fn load(layers: &Layers, console: &Console, started: Instant) -> Result<Session, Failure> {
        let settings = EngineSettings::resolve(layers)?;
        let located = locate(layers, console)?;
        let checkpoint = Checkpoint::open(&located.path)?;
        let generation = GenerationConfig::load(&checkpoint, &RawConfig::load(&checkpoint)?)?;
        let (device, notes) = settings.open(layers)?;
        notes.iter().for_each(|note| console.note(note));
        let info = device.info();
        tracing::debug!(backend = info.backend, ordinal = info.ordinal, arch = info.arch, facts = ?info.facts, "device");
        // The last part of a path says which model it is; the rest would leave no room for the bar.
        let short = located.name.trim_end_matches('/').rsplit('/').next().unwrap_or(&located.name);
        let bar = console.progress(&format!("loading {short}"), checkpoint.total_bytes(), 0);
        let mut progress = |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        };
        let (packs, began) = (device.packing().is_some(), Instant::now());
        // The vocabulary takes as long as weights that need only be mapped.
        let (engine, texts) = std::thread::scope(|scope| {
            let reader = std::thread::Builder::new().name("yirage-texts".into());
            let texts = reader.spawn_scoped(scope, || Texts::load(&checkpoint));
            let engine = Engine::load(&checkpoint, device, &settings.options, &mut progress);
            let texts = match texts {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // Where there is room for no further thread, one after the other.
                Err(_) => Texts::load(&checkpoint),
            };
            (engine, texts)
        });
        bar.finish_and_clear();
        let (mut engine, texts) = (engine?, texts?);
        match &settings.draft {
            Some(draft) => load_draft(&mut engine, draft, texts.as_ref(), layers, console)?,
            None if layers.given("draft-model").is_some() => {
                console.note(&format!("{} is not used", layers.label("draft-model")));
            }
            None => {}
        }
        let facts = engine.facts();
        if let (true, Some(packed), None) = (packs, &settings.options.packed, &facts.packed_weights) {
            console.note(&format!(
                "repacked the weights for this processor: {} in {:.1} s; later starts find them in {}",
                bytes(facts.bytes.weights),
                began.elapsed().as_secs_f64(),
                packed.folder.display()
            ));
        }
        say_notices(&mut engine, console);
        let facts = engine.facts();
        tracing::debug!(
            architecture = facts.architecture,
            vocabulary = facts.vocabulary,
            context = facts.context,
            kv = facts.kv.info().name,
            weight_bytes = facts.bytes.weights,
            cache_bytes = facts.bytes.cache,
            arena_bytes = facts.bytes.arena,
            draft_bytes = engine.draft_bytes().map_or(0, |bytes| bytes.total()),
            draft_max = settings.options.speculation.most,
            lookup = settings.options.speculation.lookup,
            packed_weights = ?facts.packed_weights,
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
        Ok(Session { name: located.name, engine, texts, generation, load_ms })
    }

    /// What remains to be done when the last result is out: writes the repacked weights that the next start will map,
    /// where that is not done yet. No result depends on it.
    pub(crate) fn settle(&mut self, console: &Console) {
        let mut bar = None;
        self.engine.settle(&mut |done, total| {
            const WHAT: &str = "keeping repacked weights for the next start";
            bar.get_or_insert_with(|| console.progress(WHAT, total, done)).set_position(done);
        });
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        say_notices(&mut self.engine, console);
    }

    /// The ids that end a text: those the model's settings name and those its tokenizer knows.
    pub(crate) fn ends(&self) -> Vec<u32> {
        let mut ends = self.generation.eos.clone();
        ends.extend(self.texts.iter().flat_map(|t| t.tokenizer.special_ids().ends.iter()));
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// [`Failure::Other`] naming the model and `instead`, an option that takes ids.
    pub(crate) fn texts(&self, instead: &str) -> Result<&Texts, Failure> {
        let missing = || format!("{}: the model has no tokenizer; give token ids with {instead}", self.name);
        self.texts.as_ref().ok_or_else(|| Failure::Other(missing()))
    }
}

/// Says what became known of the repacked weights.
fn say_notices(engine: &mut Engine, console: &Console) {
    engine.notices().iter().for_each(|notice| console.note(&notice.to_string()));
}

/// Loads the model that guesses.
fn load_draft(
    engine: &mut Engine,
    name: &str,
    texts: Option<&Texts>,
    layers: &Layers,
    console: &Console,
) -> Result<(), Failure> {
    let located = named(name, layers, console)?;
    let checkpoint = Checkpoint::open(&located.path)?;
    let drafting = Texts::load(&checkpoint)?;
    let tokenizers = texts.zip(drafting.as_ref()).map(|(model, draft)| (&model.tokenizer, &draft.tokenizer));
    let bar = console.progress("loading the draft model", checkpoint.total_bytes(), 0);
    let loaded = engine.load_draft(&checkpoint, tokenizers, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    Ok(loaded?)
}
