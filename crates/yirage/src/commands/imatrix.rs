//! `yirage imatrix`: a model read over a text, and how much each input of its matrices counts.

use crate::console::{Console, bytes};
use crate::failure::CliFailure;
use crate::locate::named;
use crate::options::Layers;
use crate::settings::{DeviceSettings, precision, read_input};
use serde_json::json;
use std::path::{Path, PathBuf};
use yirage_convert::{ConvertError, ImportanceSums, ImportanceText, OUTPUT_MATRIX};
use yirage_engine::scheduler::LogitsWanted;
use yirage_engine::{BesideLogits, Forward, ForwardOptions, ForwardRow};
use yirage_model::{Checkpoint, RawConfig};
use yirage_plancache::{CacheOptions, HostArray};
use yirage_session::TextProcessor;

/// Tokens of a chunk and of a step where nobody says: what `llama-imatrix` reads at once.
const USUAL_CHUNK: u32 = 512;

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options, the files or the device; [`CliFailure::Convert`].
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    // The model that other commands take where none is named is quantised already.
    let given = layers.text("model").ok_or_else(no_model)?;
    layers.one_of(&["file", "ids"])?.ok_or_else(no_text)?;
    let ids = layers.ids("ids")?;
    let located = named(given, layers, console)?;
    let output = output(given, &located.path, layers);
    let force = layers.switch("force")?;
    if output.exists() && !force {
        return Err(ConvertError::Exists { path: output }.into());
    }
    let checkpoint = Checkpoint::open(&located.path)?;
    if checkpoint.gguf().is_none() {
        return Err(ConvertError::NotGguf { path: located.path }.into());
    }
    let limits = ChunkLimits::resolve(layers, &checkpoint)?;
    let text = match ids {
        Some(ids) => CalibrationText { name: "ids".to_owned(), ids, begin: None },
        None => CalibrationText::read(Path::new(layers.text("file").unwrap_or_default()), &checkpoint, layers)?,
    };
    let chunks = text.chunks(&limits, console)?;
    let mut forward = opened(layers, console, &checkpoint, limits.size)?;
    let inputs = forward.matmul_inputs();
    let output_matrix = layers.switch("process-output")?;
    let mut sums = ImportanceSums::new(&checkpoint, &inputs, output_matrix);
    if output_matrix && checkpoint.tensors().all(|tensor| tensor.name != OUTPUT_MATRIX) {
        console.note("--process-output: the token embedding makes the logits, and no matrix of its own");
    }
    let bar = console.progress("reading the text", chunks.len() as u64, 0);
    for chunk in &chunks {
        forward.reset_cache(None, None)?;
        for (at, tokens) in chunk.chunks(limits.step).enumerate() {
            let row = ForwardRow { sequence: 0, start: (at * limits.step) as u32, tokens };
            // All rows, for what the head is multiplied with is of those that are wanted.
            let step = forward.forward(&[row], LogitsWanted::All)?;
            sums.add(
                |at| numbers(&step.beside[at], f32::from_ne_bytes),
                |at| numbers(&step.beside[at], i32::from_ne_bytes),
            );
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    notices(&sums, console);
    let read = ImportanceText { dataset: text.name, chunks: chunks.len() as u32, chunk_size: limits.size };
    let written = sums.write(&read, &output, force)?;
    let tokens: usize = chunks.iter().map(Vec::len).sum();
    if console.json {
        let (unreached, _) = sums.unreached();
        return console.value(&json!({"output": output, "bytes": written, "tensors": sums.tensors(), "chunks": read.chunks,
            "chunk_size": read.chunk_size, "tokens": tokens, "left_out": sums.left_out(), "unreached_experts": unreached}));
    }
    let (tensors, chunks) = (sums.tensors(), read.chunks);
    console.line(&format!(
        "{}: {}, importances of {tensors} tensors from {tokens} tokens in {chunks} chunks",
        output.display(),
        bytes(written)
    ))
}

fn no_model() -> CliFailure {
    CliFailure::Usage("expected a GGUF file, got none; name it: `yirage imatrix MODEL TEXT`".to_owned())
}

fn no_text() -> CliFailure {
    CliFailure::Usage("a text is missing; give --file TEXT or --ids 1,2,3".to_owned())
}

/// What the options name, or `NAME-imatrix.gguf` beside the file; where the user is of what was found in a cache or in the
/// folder of models.
fn output(given: &str, source: &Path, layers: &Layers) -> PathBuf {
    if let Some(named) = layers.text("imatrix-output") {
        return named.into();
    }
    let name = format!("{}-imatrix.gguf", source.file_stem().unwrap_or_default().to_string_lossy());
    if Path::new(given) == source { source.with_file_name(name) } else { name.into() }
}

/// How a text is cut.
struct ChunkLimits {
    /// Tokens of a chunk, at least 1.
    size: u32,
    /// Tokens of a step, at least 1.
    step: usize,
    /// Chunks at most.
    most: usize,
}

impl ChunkLimits {
    fn resolve(layers: &Layers, checkpoint: &Checkpoint) -> Result<ChunkLimits, CliFailure> {
        // A chunk that nobody asked for is no longer than what the model was made for.
        let trained = RawConfig::load(checkpoint)?.opt_u32("max_position_embeddings")?;
        let usual = trained.map_or(USUAL_CHUNK, |trained| trained.clamp(1, USUAL_CHUNK));
        let positive = |name, what| layers.number(name, what, |&n: &u32| n > 0);
        Ok(ChunkLimits {
            size: positive("imatrix-context", "a number of tokens from 1 on")?.unwrap_or(usual),
            step: positive("chunk", "a number of tokens from 1 on")?.unwrap_or(USUAL_CHUNK) as usize,
            most: positive("chunks", "a number of chunks from 1 on")?.map_or(usize::MAX, |n| n as usize),
        })
    }
}

/// What the model reads.
struct CalibrationText {
    name: String,
    ids: Vec<u32>,
    /// What every chunk begins with, in the place of its first token.
    begin: Option<u32>,
}

impl CalibrationText {
    fn read(path: &Path, checkpoint: &Checkpoint, layers: &Layers) -> Result<CalibrationText, CliFailure> {
        let text = read_input(path)?;
        let Some(texts) = TextProcessor::load(checkpoint)? else {
            return Err(CliFailure::Usage(format!("{} has no tokenizer; give --ids 1,2,3", checkpoint.label())));
        };
        let mut options = texts.tokenizer.default_options();
        options.parse_special = layers.maybe_switch("parse-special")?.unwrap_or(options.parse_special);
        let ids = texts.tokenizer.encode(&text, options)?;
        let begin = texts.tokenizer.prefix().first().copied();
        Ok(CalibrationText { name: path.display().to_string(), ids, begin })
    }

    /// The chunks, each of the same number of tokens; a text that is no whole chunk is one of its own.
    fn chunks(&self, limits: &ChunkLimits, console: &Console) -> Result<Vec<Vec<u32>>, CliFailure> {
        let (size, tokens) = (limits.size as usize, self.ids.len());
        if tokens == 0 {
            return Err(CliFailure::Usage(format!("{}: expected a text, got none", self.name)));
        }
        let mut chunks: Vec<Vec<u32>> = self.ids.chunks(size).take(limits.most).map(<[u32]>::to_vec).collect();
        if chunks.len() > 1 {
            chunks.retain(|chunk| chunk.len() == size);
        }
        if let Some(begin) = self.begin {
            chunks.iter_mut().for_each(|chunk| chunk[0] = begin);
        }
        let read: usize = chunks.iter().map(Vec::len).sum();
        if read < tokens {
            console.note(&format!("{} of {tokens} tokens are read, in chunks of {size}", read));
        } else if read < size {
            console
                .note(&format!("the text has {tokens} tokens: fewer than a chunk of {size}; a longer one says more"));
        }
        Ok(chunks)
    }
}

/// The model, loaded, for sequences of so many positions.
fn opened(layers: &Layers, console: &Console, checkpoint: &Checkpoint, context: u32) -> Result<Forward, CliFailure> {
    let settings = DeviceSettings::resolve(layers)?;
    let (device, notes) = settings.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let plans = CacheOptions { precision: precision(layers)?, ..CacheOptions::default() };
    let options = ForwardOptions {
        context: Some(context),
        plans,
        beside: BesideLogits::MatmulInputs,
        ..ForwardOptions::default()
    };
    let mut forward = Forward::open(checkpoint, device, &options)?;
    let mut bar = None;
    forward.load_weights(checkpoint, &mut |done, all| {
        bar.get_or_insert_with(|| console.progress("loading", all, 0)).set_position(done);
    })?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    forward.reset_cache(Some(1), None)?;
    Ok(forward)
}

/// The elements of a host's array, of four bytes each.
fn numbers<T>(array: &HostArray, of: fn([u8; 4]) -> T) -> Vec<T> {
    array.bytes().as_chunks::<4>().0.iter().map(|bytes| of(*bytes)).collect()
}

/// What the file says nothing of, or little.
fn notices(sums: &ImportanceSums, console: &Console) {
    if let Some(first) = sums.left_out().first() {
        let count = sums.left_out().len();
        console.note(&format!("{count} matrices have no importances, {first:?} first; -v names all"));
        sums.left_out().iter().for_each(|name| console.detail(&format!("{name}: no importances")));
    }
    let (unreached, all) = sums.unreached();
    if unreached > 0 {
        console.note(&format!(
            "{unreached} of {all} experts were chosen by no token: all their inputs count the same; a longer text reaches more"
        ));
    }
}
