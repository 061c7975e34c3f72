//! A model's configuration in one dialect, whatever it was written in.
//!
//! Architecture files read [`RawConfig`] by the key names of current Hugging Face `config.json` files (`hidden_size`,
//! `num_hidden_layers`, `rope_parameters`, `layer_types`, ...). Normalisation brings the others there:
//! * `text_config` of multi-modal models becomes the configuration itself;
//! * older names get their current ones (`torch_dtype`, `n_embd`, `num_local_experts`, ...);
//! * keys that a file may omit get the reference implementation's defaults;
//! * GGUF metadata is translated key by key (and back in [`crate::gguf_config`], where a GGUF file is written).
//!
//! This module does not know how a model computes. Whether a value makes sense for an architecture is for its file to
//! say.

mod access;
mod context_limit;
mod defaults;
mod from_gguf;
mod from_json;
mod generation;
mod gguf_hybrids;
pub(crate) mod gguf_keys;
mod gguf_mismatch;
mod layers;
mod learned_positions;
mod names;
mod pinned;
mod quantization;
mod reranker;
mod rope;
mod sentence;

pub use context_limit::ContextLimit;
pub use generation::GenerationConfig;
pub(crate) use gguf_keys::is_read as is_read_from_gguf;
pub use layers::LayerType;
pub use quantization::Quantization;
pub use reranker::Reranker;
pub use rope::{FrequencyDivisors, QueryGrowth, RopeConfig, RopeScaling};
pub use sentence::{Pooling, SentenceConfig};

use crate::checkpoint::Checkpoint;
use crate::error::ModelError;
use crate::limits::CONFIG_BYTES;
use names::ConfigKeyNames;
use serde_json::{Map, Value};
use std::path::Path;
use yirage_mmap::read_bytes;

/// Where a configuration came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigSource {
    /// A `config.json`.
    Json,
    /// The metadata of a GGUF file.
    Gguf,
}

/// A model's configuration, normalised.
///
/// A key whose value is `null` counts as absent in every accessor.
#[derive(Clone, Debug)]
pub struct RawConfig {
    file: String,
    source: ConfigSource,
    values: Map<String, Value>,
    names: ConfigKeyNames,
    /// The family of the multi-modal model that this is the language model of; empty where its file names none.
    whole: Option<String>,
    /// Why `max_position_embeddings` is less than the file says.
    context_limit: Option<ContextLimit>,
}

impl RawConfig {
    /// The configuration of a checkpoint: its GGUF metadata, or the `config.json` beside its safetensors.
    ///
    /// # Errors
    /// [`ModelError`] when there is none, or it is not what it should be.
    pub fn load(checkpoint: &Checkpoint) -> Result<RawConfig, ModelError> {
        match (checkpoint.gguf(), checkpoint.folder()) {
            (Some(gguf), _) => {
                let has_tensor = |name: &str| checkpoint.tensor(name).is_some();
                let rows = checkpoint.tensor("token_embd.weight").map(|t| t.shape[0]);
                RawConfig::from_gguf(gguf, &has_tensor, rows)
            }
            (None, folder) => {
                let path = folder.unwrap_or(Path::new("")).join("config.json");
                RawConfig::from_json(&read_bytes(&path, CONFIG_BYTES)?, &path.display().to_string())
            }
        }
    }

    /// The file, as errors call it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where the configuration came from: containers differ in tensor names and in how some values are arranged.
    pub fn source(&self) -> ConfigSource {
        self.source
    }

    /// What the file itself calls `key`: `llama.block_count` in GGUF metadata, an older name in a `config.json`.
    pub fn called(&self, key: &str) -> String {
        self.names.of(key)
    }

    /// `text`, which speaks of keys, in the names of the file.
    pub(crate) fn in_its_names(&self, text: &str) -> String {
        self.names.in_text(text)
    }

    /// Whether this is the language model's part of a multi-modal model's configuration.
    pub fn is_part(&self) -> bool {
        self.whole.is_some()
    }

    /// The family of the multi-modal model that this is the language model of: `llava`, `gemma3`.
    pub fn family(&self) -> Option<&str> {
        self.whole.as_deref().filter(|name| !name.is_empty())
    }

    /// The vision tower's part of a multi-modal model's configuration, where it has one.
    ///
    /// # Errors
    /// [`ModelError::Config`] for a part that is no object.
    pub fn vision(&self) -> Result<Option<RawConfig>, ModelError> {
        let mut values = match self.get("vision_config") {
            None => return Ok(None),
            Some(Value::Object(values)) => values.clone(),
            Some(_) => return Err(self.invalid("vision_config", "an object")),
        };
        let mut names = ConfigKeyNames::default();
        for key in values.keys() {
            names.add(key.as_str(), format!("vision_config.{key}"));
        }
        let model_type = values.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        defaults::fill(&model_type, &mut values);
        Ok(Some(RawConfig {
            file: self.file.clone(),
            source: self.source,
            values,
            names,
            whole: None,
            context_limit: None,
        }))
    }

    /// All normalised values.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// `model_type` in the Hugging Face spelling: `llama`, `qwen3_moe`, `gemma3_text`, `gpt_oss`. A GGUF architecture
    /// without a counterpart keeps its own name.
    ///
    /// # Errors
    /// [`ModelError::Config`] when it is absent.
    pub fn model_type(&self) -> Result<&str, ModelError> {
        self.str("model_type")
    }

    /// The class names in `architectures`; empty when absent.
    pub fn architectures(&self) -> Vec<&str> {
        let list = self.values.get("architectures").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Refuses what is recognised but cannot be computed, by its name: stored quantisations and rope scalings. Call it
    /// before anything else is read, so that the user hears the real reason first.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`], or [`ModelError::Config`] for malformed values.
    pub fn check_supported(&self) -> Result<(), ModelError> {
        self.quantization()?;
        self.check_pinned()?;
        self.check_rope_sections()?;
        self.rope(LayerType::Full)?;
        self.rope(LayerType::Sliding)?;
        Ok(())
    }
}

fn check_length(length: u64, file: &str) -> Result<(), ModelError> {
    if length <= CONFIG_BYTES {
        return Ok(());
    }
    Err(ModelError::Config {
        file: file.to_owned(),
        key: "the file".into(),
        expected: format!("at most {CONFIG_BYTES} bytes"),
        found: format!("{length} bytes"),
    })
}

/// Parses a JSON object within [`CONFIG_BYTES`]; the parser itself bounds the nesting depth.
fn parse_object(bytes: &[u8], file: &str) -> Result<Map<String, Value>, ModelError> {
    check_length(bytes.len() as u64, file)?;
    match serde_json::from_slice(bytes).map_err(|e| ModelError::json(file, &e))? {
        Value::Object(map) => Ok(map),
        other => Err(access::mismatch(file, "the file", "a JSON object", &other)),
    }
}
