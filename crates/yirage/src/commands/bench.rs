//! `yirage bench`: how fast a model runs here, and how much of the machine that is.

use crate::bench::{BaselineFile, Bench, BenchRow, BenchSample, BenchSettings, BenchSetup, BenchTest, Printer};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::locate::{locate, named};
use crate::options::Layers;
use crate::profiling::Profiling;
use crate::settings::EngineSettings;
use std::sync::Arc;
use yirage_engine::limits::MAX_CONTEXT;
use yirage_engine::{CacheSize, Engine, EngineOptions, Speculation};
use yirage_hal::Device;
use yirage_model::{Checkpoint, RawConfig};
use yirage_registry::most_threads;
use yirage_session::LocalModel;

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, models or devices; [`CliFailure::Slower`] when a row is slower than the one it is compared
/// with, beyond the noise of both, after all rows were printed.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let settings = BenchSettings::resolve(layers, most_threads())?;
    let old = settings.compare.as_deref().map(BaselineFile::read).transpose()?;
    refuse_profiles_of_several(layers, &settings)?;
    let mut printer = Printer::new(console, settings.output, old.is_some());
    let mut slower = 0;
    for model in &settings.models {
        let located = match model {
            Some(name) => named(name, layers, console)?,
            None => locate(layers, console)?,
        };
        check_context(&settings.tests, &located, layers)?;
        for &threads in &settings.threads {
            for &batch in &settings.batches {
                let one = ModelBench { layers, console, settings: &settings, located: &located, threads, batch };
                one.run(&mut |mut row| {
                    row.compare = old.as_ref().and_then(|old| old.compare(&row));
                    slower += usize::from(row.compare.as_ref().is_some_and(|c| c.is_slower()));
                    printer.row(&row)
                })?;
            }
        }
    }
    console.note(printer.legend());
    printer.finish()?;
    if slower > 0 { Err(CliFailure::Slower(slower)) } else { Ok(()) }
}

/// Refuses a profile of several devices: it is of one, which every number of threads or of sequences opens anew.
fn refuse_profiles_of_several(layers: &Layers, settings: &BenchSettings) -> Result<(), CliFailure> {
    let sequences = settings.tests.first().map(|t| t.sequences);
    let alike = settings.tests.iter().all(|t| Some(t.sequences) == sequences);
    let one = [settings.models.len(), settings.threads.len(), settings.batches.len()] == [1; 3] && alike;
    if one || layers.raw_value("profile").is_none() {
        return Ok(());
    }
    let label = layers.label("profile");
    Err(CliFailure::Usage(format!(
        "{label}: one model, number of threads, sequences and batch size wanted, not several"
    )))
}

/// Refuses tests of more positions than the model was made for, before anything is loaded.
fn check_context(tests: &[BenchTest], located: &LocalModel, layers: &Layers) -> Result<(), CliFailure> {
    let checkpoint = Checkpoint::open(&located.path)?;
    let trained = RawConfig::load(&checkpoint)?.opt_u32("max_position_embeddings")?.unwrap_or(MAX_CONTEXT);
    let Some(test) = tests.iter().find(|t| t.positions() > u64::from(trained)) else { return Ok(()) };
    let label = layers.label(test.longest_part());
    let (positions, name) = (test.positions(), &located.name);
    Err(CliFailure::Usage(format!("{label}: {test} takes {positions} positions, and {name} was made for {trained}")))
}

/// A model with a number of threads and a size of steps.
struct ModelBench<'a> {
    layers: &'a Layers,
    console: &'a Console,
    settings: &'a BenchSettings,
    located: &'a LocalModel,
    threads: Option<usize>,
    batch: u32,
}

impl ModelBench<'_> {
    /// Runs all tests; each number of sequences gets an engine made for as many.
    fn run(&self, done: &mut dyn FnMut(BenchRow) -> Result<(), CliFailure>) -> Result<(), CliFailure> {
        let tests = &self.settings.tests;
        let mut counts: Vec<u32> = tests.iter().map(|t| t.sequences).collect();
        counts.sort_unstable();
        counts.dedup();
        for sequences in counts {
            let tests: Vec<BenchTest> = tests.iter().copied().filter(|t| t.sequences == sequences).collect();
            let (mut bench, setup) = load(self.layers, self.console, self.located, self.threads, self.batch, &tests)?;
            for test in &tests {
                done(self.measure(&mut bench, &setup, test)?)?;
            }
            bench.write_profile(self.console)?;
        }
        Ok(())
    }

    fn measure(&self, bench: &mut Bench, setup: &BenchSetup, test: &BenchTest) -> Result<BenchRow, CliFailure> {
        self.console.note(&format!("{}: {test}: warm-up", self.located.name));
        bench.warm_up(test)?;
        let mut samples: Vec<BenchSample> = Vec::new();
        for turn in 0..self.settings.repetitions {
            let sample = bench.run(test, turn)?;
            let (name, of) = (&self.located.name, self.settings.repetitions);
            self.console.note(&format!("{name}: {test}: {} of {of}: {:.2} t/s", turn + 1, sample.rate()));
            samples.push(sample);
        }
        Ok(BenchRow::new(setup, test, bench.executor(test), &samples))
    }
}

/// An engine with room for `tests`, which all have the same number of sequences.
///
/// # Errors
/// Whatever is wrong with options, model or device.
pub(crate) fn load(
    layers: &Layers,
    console: &Console,
    located: &LocalModel,
    threads: Option<usize>,
    batch: u32,
    tests: &[BenchTest],
) -> Result<(Bench, BenchSetup), CliFailure> {
    let mut settings = EngineSettings::for_threads(layers, threads)?;
    fit(&mut settings.options, batch, tests);
    let checkpoint = Checkpoint::open(&located.path)?;
    let division = settings.check_division(&checkpoint, layers)?;
    let (device, notes) = settings.open(layers)?;
    notes.iter().chain(&division).for_each(|note| console.note(note));
    let profiling = Profiling::begin(layers, &*device)?;
    let engine = load_on(&checkpoint, &device, &settings.options, &located.name, console)?;
    let precision = settings.options.precision;
    let path = located.path.to_string_lossy();
    let setup = BenchSetup::new(&path, &checkpoint, &engine, device.info(), precision, batch);
    Ok((Bench::new(engine, device, precision, batch, profiling)?, setup))
}

/// Gives an engine the room that `tests` take with steps of `batch` tokens.
pub(crate) fn fit(options: &mut EngineOptions, batch: u32, tests: &[BenchTest]) {
    let sequences = tests.iter().map(|t| t.sequences).max().unwrap_or(1);
    options.max_seqs = sequences;
    // A prompt must not take the place of its cached beginning.
    let held = sequences + u32::from(tests.iter().any(|t| t.depth > 0 && t.prompt > 0));
    options.cache = CacheSize::Sequences(held);
    options.chunk = batch;
    options.prefix_cache = true;
    // Guesses at what follows random tokens say nothing of a text.
    options.speculation = Speculation::default();
    options.context = Some(tests.iter().map(|t| t.context(batch)).max().unwrap_or(1));
}

/// Loads an engine for measuring: what it would do beside the first steps is done.
///
/// # Errors
/// As [`Engine::load`].
pub(crate) fn load_on(
    checkpoint: &Checkpoint,
    device: &Arc<dyn Device>,
    options: &EngineOptions,
    name: &str,
    console: &Console,
) -> Result<Engine, CliFailure> {
    let bar = console.progress(&format!("loading {name}"), checkpoint.total_bytes(), 0);
    let mut progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let mut engine = Engine::load(checkpoint, device.clone(), options, &mut progress)?;
    // Now rather than beside what is measured.
    engine.settle(&mut progress);
    bar.finish_and_clear();
    engine.notices().iter().for_each(|notice| console.note(&notice.to_string()));
    Ok(engine)
}
