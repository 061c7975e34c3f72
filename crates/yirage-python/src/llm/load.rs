//! From a name to a model on its thread.

use super::guessing::Guessing;
use crate::backends;
use crate::division::{check_division, check_stages};
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::log::{Level, all, say};
use crate::ranks;
use pyo3::prelude::*;
use std::path::PathBuf;
use yirage_engine::{
    CacheSize, EncoderOptions, EngineError, EngineOptions, PackedOptions, Tuning, is_embedding_decoder,
};
use yirage_hal::OpenOptions;
use yirage_hub::{Hub, HubEnv, NoProgress};
use yirage_model::{Checkpoint, ModelError};
use yirage_plan::{ExpertDivision, Precision};
use yirage_ranks::RankRole;
use yirage_session::{LoadedEngine, LocalModel, ModelHandle, SessionError, TextEncoder, why_no_pictures};

/// Sequences of full length that the cache holds where nobody says how much it holds.
const CACHED: u32 = 4;
/// Most bytes of repacked weights on disk, as the command line has it.
const PACKED: u64 = 20 << 30;

/// What an `LLM` is asked for.
pub(super) struct LlmOptions {
    pub(super) model: String,
    pub(super) task: String,
    pub(super) backend: Option<String>,
    pub(super) threads: Option<usize>,
    pub(super) precision: String,
    pub(super) max_model_len: Option<u32>,
    pub(super) max_num_seqs: u32,
    pub(super) max_num_batched_tokens: Option<u32>,
    pub(super) kv_cache_dtype: String,
    pub(super) kv_cache_memory_bytes: Option<u64>,
    pub(super) enable_prefix_caching: bool,
    pub(super) guessing: Guessing,
    pub(super) variant: Option<String>,
    /// Ranks that compute the model together, and what each has of it.
    pub(super) ranks: u32,
    pub(super) role: RankRole,
    pub(super) experts: ExpertDivision,
    /// Adapters with their scales.
    pub(super) lora: Vec<(PathBuf, f32)>,
}

/// What a model does.
pub(super) enum LoadedLlm {
    /// It continues texts.
    Generates(Box<ModelHandle>),
    /// It computes whole texts.
    Encodes(Box<TextEncoder>),
}

impl LlmOptions {
    fn options(&self) -> PyOutcome<EngineOptions> {
        let usual = EngineOptions::default();
        let kv = crate::dtype::of_cache(&self.kv_cache_dtype)?;
        let cache = self.kv_cache_memory_bytes.map_or(CacheSize::Sequences(CACHED), CacheSize::Bytes);
        let env = HubEnv::from_env();
        let packed = (!env.homeless).then(|| PackedOptions { folder: env.packed_weights(), limit: PACKED });
        let tuning = match &self.variant {
            Some(choices) => Tuning::Forced(choices.clone()),
            None => Tuning::Measured { folder: packed.as_ref().map(PackedOptions::texts), anew: None },
        };
        Ok(EngineOptions {
            precision: self.precision()?,
            kv,
            context: self.max_model_len,
            max_seqs: self.max_num_seqs,
            cache,
            chunk: self.max_num_batched_tokens.unwrap_or(usual.chunk),
            prefix_cache: self.enable_prefix_caching,
            hidden: self.task == "embed",
            speculation: self.guessing.speculation,
            plans: packed.as_ref().map(PackedOptions::plans),
            packed,
            tuning,
            ..usual
        })
    }

    fn precision(&self) -> PyOutcome<Precision> {
        match self.precision.as_str() {
            "fast" => Ok(Precision::Fast),
            "exact" => Ok(Precision::Exact),
            other => Err(PyFailure::option(format!("precision={other:?}: 'fast' or 'exact' is wanted"))),
        }
    }

    /// The model, loaded and on its thread.
    ///
    /// # Errors
    /// Whatever is wrong with options, files or the device.
    pub(super) fn load(&self, py: Python<'_>) -> PyOutcome<LoadedLlm> {
        if !["auto", "generate", "embed", "score"].contains(&self.task.as_str()) {
            let text = format!("task={:?}: 'auto', 'generate', 'embed' or 'score' is wanted", self.task);
            return Err(PyFailure::option(text));
        }
        let options = self.options()?;
        let chosen = match &self.backend {
            Some(name) => backends::select(py, name)?,
            None => backends::current(py)?,
        };
        let path = resolve_model(py, &self.model)?;
        match self.role {
            RankRole::Shard if self.ranks > 1 => check_division(py, &path, self.ranks, self.experts)?,
            RankRole::Shard => {}
            RankRole::Stage => check_stages(py, &path, self.ranks)?,
        }
        let device = match self.threads {
            Some(0) => return Err(PyFailure::option("threads=0: one or more")),
            threads if self.ranks > 1 => {
                let options = OpenOptions { threads, experts: self.experts, ..OpenOptions::default() };
                ranks::leading_device(py, &chosen, 0, options, (self.ranks, self.role))?
            }
            None => backends::device(py, &chosen, 0)?,
            threads => backends::device_with(py, &chosen, 0, OpenOptions { threads, ..OpenOptions::default() })?,
        };
        let draft = self.guessing.draft.as_deref().map(|name| resolve_model(py, name)).transpose()?;
        let tuning = options.tuning.clone();
        let encoder = EncoderOptions { precision: options.precision, tuning, ..EncoderOptions::default() };
        let (ready, notes) = py.detach(|| {
            let checkpoint = Checkpoint::open(&path)?;
            let mut notes = Vec::new();
            // Pictures may come with any prompt.
            let refused = why_no_pictures(&checkpoint)?;
            notes.extend(refused.iter().map(|why| format!("pictures will be refused: {why}")));
            let embedded = self.task != "embed" && refused.is_none();
            let options = EngineOptions { adapters: super::lora::open(&self.lora)?, embedded, ..options };
            let encode = || TextEncoder::load(&checkpoint, device.clone(), &encoder, &mut |_, _| {});
            let vectors = matches!(self.task.as_str(), "embed" | "score");
            if vectors && is_embedding_decoder(&checkpoint).map_err(SessionError::from)? {
                let encoder = encode()?;
                notes.extend(encoder.notices().iter().map(ToString::to_string));
                return Ok((LoadedLlm::Encodes(Box::new(encoder)), notes));
            }
            let loaded = LoadedEngine::load(&checkpoint, device.clone(), &options, &mut |_, _| {});
            let ready = match loaded {
                Ok(mut loaded) => {
                    if let Some(draft) = &draft {
                        loaded.load_draft(&Checkpoint::open(draft)?, &mut |_, _| {})?;
                    }
                    notes.extend(loaded.engine.notices().iter().map(ToString::to_string));
                    LoadedLlm::Generates(Box::new(loaded.start()?))
                }
                Err(error) if self.task != "generate" && is_unsupported(&error) => match encode() {
                    Ok(encoder) => {
                        notes.extend(encoder.notices().iter().map(ToString::to_string));
                        LoadedLlm::Encodes(Box::new(encoder))
                    }
                    // What a model that is neither lacks is told of the way that was asked for first.
                    Err(refused) if is_unsupported(&refused) => return Err(PyFailure::from(error)),
                    Err(refused) => return Err(PyFailure::from(refused)),
                },
                Err(error) => return Err(error.into()),
            };
            Ok((ready, notes))
        })?;
        all(py, Level::Info, &notes)?;
        if self.task == "score" && matches!(ready, LoadedLlm::Generates(_)) {
            let why = "it continues texts; scores are made by encoders with labels, such as cross-encoders";
            return Err(PyFailure::unsupported(format!("scores of {}", self.model), why));
        }
        Ok(ready)
    }
}

/// The files of a model: a path, a name of the catalogue or of a repository.
///
/// # Errors
/// A `ModelNotFoundError` that says where it was looked for.
pub(crate) fn resolve_model(py: Python<'_>, name: &str) -> PyOutcome<PathBuf> {
    let found = py.detach(|| match LocalModel::here(name, None) {
        Some(found) => Ok(found),
        None => LocalModel::by_hub(name, &Hub::new(HubEnv::from_env()), &NoProgress).map_err(|error| {
            let text = format!("the model {name:?} is neither a path nor known: {error}");
            PyFailure::Ours(Class::ModelNotFound, text)
        }),
    })?;
    if found.fetched {
        say(py, Level::Info, &format!("fetched {} to {}", found.name, found.path.display()))?;
    }
    Ok(found.path)
}

fn is_unsupported(error: &SessionError) -> bool {
    matches!(error, SessionError::Engine(EngineError::Model(ModelError::Unsupported { .. })))
        || matches!(error, SessionError::Model(ModelError::Unsupported { .. }))
}
