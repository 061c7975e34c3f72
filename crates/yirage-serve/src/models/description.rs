//! What is known of a model by its files' headers, before it is opened and without its place.

use std::collections::HashMap;
use yirage_model::checkpoint::CheckpointKind;
use yirage_model::{Checkpoint, RawConfig};

/// What a model's files say of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The kind of its files.
    pub(crate) container: &'static str,
    pub(crate) architecture: String,
    /// Numbers of all tensors.
    pub(crate) parameters: u64,
    /// The format that most of them are stored in, as ollama writes it.
    pub(crate) format: String,
    /// Positions that it was made for.
    pub(crate) context: Option<u64>,
    /// Numbers of a token's vector.
    pub(crate) width: Option<u64>,
    pub(crate) layers: Option<u64>,
}

impl Description {
    /// Of these files. What cannot be read of them is not known: whoever opens the model says what is wrong.
    pub fn of(checkpoint: &Checkpoint) -> Description {
        let config = RawConfig::load(checkpoint).ok();
        let number = |key: &str| config.as_ref().and_then(|config| config.values().get(key)).and_then(|n| n.as_u64());
        let mut formats: HashMap<String, u64> = HashMap::new();
        for tensor in checkpoint.tensors() {
            let of = formats.entry(tensor.dtype.to_string().to_uppercase()).or_default();
            *of = of.saturating_add(tensor.elements() as u64);
        }
        Description {
            container: match checkpoint.kind() {
                CheckpointKind::Gguf => "gguf",
                CheckpointKind::Safetensors => "safetensors",
            },
            architecture: config.as_ref().and_then(|c| c.model_type().ok()).unwrap_or_default().to_owned(),
            parameters: formats.values().fold(0, |sum, n| sum.saturating_add(*n)),
            // Of two that hold as many, the same one each time.
            format: formats.into_iter().max_by(|(a, n), (b, m)| n.cmp(m).then(b.cmp(a))).unwrap_or_default().0,
            context: number("max_position_embeddings"),
            width: number("hidden_size"),
            layers: number("num_hidden_layers"),
        }
    }
}
