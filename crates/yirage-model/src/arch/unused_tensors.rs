//! Tensors that a file has and the model never reads: the sign of a configuration that is not the file's. A layer too
//! few computes nonsense without any other complaint.

use crate::checkpoint::Checkpoint;
use crate::config::{ConfigSource, RawConfig};
use crate::error::{ModelError, UnusedTensors};
use std::collections::HashSet;

/// Names that an error spells out.
const SHOWN: usize = 4;

/// Ends of names of what was saved with a model and is computed, or was needed for training only: tables of rotations
/// and masks, indices of positions.
const COMPUTED: &[&str] =
    &["rotary_emb.inv_freq", "attn_rot_embd", "position_ids", ".attn.bias", ".attention.bias", ".masked_bias"];

/// Beginnings of names of what a multi-modal model has beside its language model.
const OTHER_SENSES: &[&str] = &[
    "vision_tower.",
    "vision_model.",
    "multi_modal_projector.",
    "connector.",
    "visual.",
    "audio_tower.",
    "embed_vision.",
    "embed_audio.",
];

/// Checks that the model reads every tensor of the file but the known extras.
///
/// # Errors
/// [`ModelError::UnusedTensors`] naming some, and the key that probably lies.
pub(super) fn check(checkpoint: &Checkpoint, config: &RawConfig, read: &HashSet<&str>) -> Result<(), ModelError> {
    let layers = config.layers()?;
    let guessing = guessing_layers(checkpoint, layers);
    let mut names: Vec<&str> = checkpoint.tensors().map(|t| t.name.as_str()).collect();
    names.retain(|name| {
        let guesses = layer(name).is_some_and(|l| guessing.contains(&l));
        !read.contains(name) && !guesses && !is_extra(name, config)
    });
    if names.is_empty() {
        return Ok(());
    }
    let deepest = names.iter().filter_map(|name| layer(name)).max().filter(|&l| l >= layers);
    let why = match deepest {
        Some(deepest) => {
            let (key, blocks) = (config.called("num_hidden_layers"), deepest.saturating_add(1));
            format!("{key} is {layers}, but the file has {blocks} layers; correct it to {blocks}")
        }
        None => format!("the architecture {:?} with this configuration has no place for them", config.model_type()?),
    };
    // Those of hidden layers tell most.
    let tells = |name: &&str| deepest.is_none() || layer(name).is_some_and(|l| l >= layers);
    let shown = names.iter().copied().filter(tells).take(SHOWN);
    Err(unused(checkpoint, names.len(), shown, why))
}

/// Checks that an MTP head reads every tensor of its layer.
///
/// # Errors
/// [`ModelError::UnusedTensors`] naming some.
pub(super) fn check_mtp_layer(
    checkpoint: &Checkpoint,
    config: &RawConfig,
    l: u32,
    read: &HashSet<&str>,
) -> Result<(), ModelError> {
    let of_layer = checkpoint.tensors().map(|t| t.name.as_str()).filter(|name| layer(name) == Some(l));
    let names: Vec<&str> = of_layer.filter(|name| !read.contains(name) && !is_extra(name, config)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let why = format!("layer {l} predicts further tokens, and a layer of {:?} has none of them", config.model_type()?);
    Err(unused(checkpoint, names.len(), names.iter().copied().take(SHOWN), why))
}

fn unused<'n>(checkpoint: &Checkpoint, count: usize, names: impl Iterator<Item = &'n str>, why: String) -> ModelError {
    let names = names.map(str::to_owned).collect();
    ModelError::UnusedTensors(Box::new(UnusedTensors { file: checkpoint.label(), count, names, why }))
}

fn is_extra(name: &str, config: &RawConfig) -> bool {
    let stem = name.strip_suffix(".weight").unwrap_or(name);
    let computed = COMPUTED.iter().any(|end| stem.ends_with(end));
    // A head that is the embedding under another name was compared with it.
    let root = name.strip_prefix("language_model.").unwrap_or(name);
    let tied = matches!(root, "lm_head.weight" | "embed_out.weight");
    // What makes a score of a hidden state stands behind the model.
    if matches!(name, "score.weight" | "cls.output.weight") {
        return true;
    }
    let body = name.strip_prefix("model.").unwrap_or(name);
    // Layers that predict further tokens are a part by themselves in this family.
    let guesses = name.starts_with("mtp.")
        && config.model_type().is_ok_and(|f| f == "qwen3_next" || f == "nemotron_h" || f.starts_with("qwen3_5"));
    let other_sense = config.is_part() && OTHER_SENSES.iter().any(|start| body.starts_with(start));
    config.source() == ConfigSource::Json && (computed || tied || guesses || other_sense)
        || stem.ends_with("attn_rot_embd")
}

/// Layers behind the last that predict further tokens (multi-token prediction), which the model itself is without. They
/// are told from layers that a configuration hides by the projection that joins embedding and state.
pub(super) fn guessing_layers(checkpoint: &Checkpoint, layers: u32) -> HashSet<u32> {
    let joins = |name: &str| name.ends_with(".eh_proj.weight");
    let of = checkpoint.tensors().filter(|t| joins(&t.name)).filter_map(|t| layer(&t.name));
    of.filter(|&l| l >= layers).collect()
}

/// The layer that a tensor's name counts: the first part that is a number, if it follows what layers are called.
fn layer(name: &str) -> Option<u32> {
    let parts: Vec<&str> = name.split('.').collect();
    let at = parts.windows(2).find(|pair| matches!(pair[0], "layers" | "layer" | "blk" | "h"))?;
    at[1].parse().ok()
}
