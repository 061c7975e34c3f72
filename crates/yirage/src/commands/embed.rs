//! `yirage embed`: vectors of texts.

use super::encoding::{LoadedEncoder, inputs, texts};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use serde::Serialize;
use yirage_engine::Embedding;
use yirage_model::config::Pooling;

#[derive(Serialize)]
struct EmbedOutput {
    embeddings: Vec<Vec<f32>>,
    tokens: Vec<usize>,
    /// Tokens of each text that were not computed; said only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<Vec<usize>>,
}

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, files, texts or the device.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let texts = texts(layers)?;
    let loaded = LoadedEncoder::load(layers, console)?;
    let framed: Result<Vec<_>, _> =
        texts.iter().map(|text| loaded.encoder.frame(text, layers.text("prompt-name"), loaded.limit)).collect();
    let framed = framed?;
    let left_out = loaded.truncated_tokens(&framed, console);
    let how = embedding(layers, loaded.encoder.facts().embedding)?;
    let (inputs, tokens) = inputs(framed);
    let embeddings = loaded.encoder.embed(inputs, how)?;
    if console.json {
        return console.value(&EmbedOutput { embeddings, tokens, left_out });
    }
    for row in &embeddings {
        console.line(&row.iter().map(f32::to_string).collect::<Vec<_>>().join(" "))?;
    }
    Ok(())
}

/// How vectors are made: as the options say, else as the model's files do.
fn embedding(layers: &Layers, usual: Embedding) -> Result<Embedding, CliFailure> {
    let pooling = layers.maybe_choice("pooling")?.map(|word| match word {
        "cls" => Pooling::Cls,
        "last" => Pooling::Last,
        _ => Pooling::Mean,
    });
    let normalise = layers.maybe_switch("normalize")?;
    Ok(Embedding { pooling: pooling.unwrap_or(usual.pooling), normalise: normalise.unwrap_or(usual.normalise) })
}
