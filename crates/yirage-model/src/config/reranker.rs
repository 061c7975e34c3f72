//! Decoders that say how well a text answers a query: Qwen3-Reranker and its forms in files.
//!
//! Knows nothing of how a score is computed.

use super::{ConfigSource, RawConfig};
use crate::checkpoint::Checkpoint;
use crate::error::ModelError;
use crate::gguf::GgufValue;
use crate::limits::CONFIG_BYTES;
use yirage_mmap::read_bytes_if_there;

/// The value of a GGUF file's key `pooling_type` for models that rank.
const RANKS: u32 = 4;

/// What files say of a decoder that ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reranker {
    file: String,
    /// The tensor of its labels; none where the tokens yes and no are asked for.
    head: Option<String>,
}

impl Reranker {
    /// What the files say; none for a model that does not rank. Qwen's own files do not say it but by name, as llama.cpp
    /// reads them too.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for a model that ranks by a text that is not known.
    pub fn load(checkpoint: &Checkpoint, config: &RawConfig) -> Result<Option<Reranker>, ModelError> {
        let head = match config.source() {
            ConfigSource::Gguf => {
                let ranks = |value: &GgufValue| value.as_u32() == Some(RANKS);
                if !checkpoint.gguf().and_then(|gguf| gguf.arch_key("pooling_type")).is_some_and(ranks) {
                    return Ok(None);
                }
                Some("cls.output.weight")
            }
            ConfigSource::Json => {
                let classifies = config.architectures().iter().any(|name| name.ends_with("ForSequenceClassification"));
                if !classifies && !is_named(checkpoint, config)? {
                    return Ok(None);
                }
                classifies.then_some("score.weight")
            }
        };
        let family = config.model_type()?;
        if family != "qwen3" {
            return Err(ModelError::Unsupported {
                what: format!("ranking by {family}"),
                why: format!("{}: the text that it reads a pair in is not known; Qwen3's is", config.file()),
            });
        }
        Ok(Some(Reranker { file: config.file().to_owned(), head: head.map(str::to_owned) }))
    }

    /// The weights of its labels; none where tokens are asked for.
    ///
    /// # Errors
    /// [`ModelError::MissingTensor`]; [`ModelError::Unsupported`] for another number of labels than one or two.
    pub fn rows(&self, checkpoint: &Checkpoint) -> Result<Option<Vec<Vec<f32>>>, ModelError> {
        let Some(name) = &self.head else { return Ok(None) };
        let tensor = checkpoint.require(name)?;
        let labels = tensor.shape.first().copied().unwrap_or(0);
        if tensor.shape.len() != 2 || !(1..=2).contains(&labels) {
            return Err(ModelError::Unsupported {
                what: format!("a score by {name} of shape {:?}", tensor.shape),
                why: format!("{}: one label is a score, two are yes and no", self.file),
            });
        }
        let values = checkpoint.floats(tensor)?;
        Ok(Some(values.chunks_exact(values.len() / labels).map(<[f32]>::to_vec).collect()))
    }

    /// The error for a tokenizer that has not both answers.
    pub fn without_tokens(&self) -> ModelError {
        ModelError::Unsupported {
            what: "a score by the tokens yes and no".into(),
            why: format!("{}: the tokenizer beside it has not both as single tokens", self.file),
        }
    }
}

/// Whether a name says that the model is Qwen's reranker: its folder's, the one in its configuration, its description's.
fn is_named(checkpoint: &Checkpoint, config: &RawConfig) -> Result<bool, ModelError> {
    let says = |text: &str| text.to_lowercase().contains("qwen3-reranker");
    let Some(folder) = checkpoint.folder() else { return Ok(false) };
    let of_folder = folder.file_name().and_then(|name| name.to_str()).is_some_and(says);
    let of_config = config.values().get("_name_or_path").and_then(|name| name.as_str()).is_some_and(says);
    if of_folder || of_config {
        return Ok(true);
    }
    let Some(text) = read_bytes_if_there(&folder.join("README.md"), CONFIG_BYTES)? else { return Ok(false) };
    Ok(String::from_utf8_lossy(&text).to_lowercase().contains("# qwen3-reranker"))
}
