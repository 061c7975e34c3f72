//! `yirage rerank`: how well texts answer a query, by a model that reads both together.

use super::encoding::{LoadedEncoder, inputs, texts};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use serde::Serialize;
use yirage_model::ModelError;
use yirage_model::arch::ModelOutput;

#[derive(Serialize)]
struct RerankOutput {
    scores: Vec<f32>,
    tokens: Vec<usize>,
    /// Tokens of each pair that were not computed; said only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<Vec<usize>>,
}

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, files, texts or the device.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let texts = texts(layers)?;
    let missing = || CliFailure::Usage("--query is missing; give what the texts are to answer".into());
    let query = layers.text("query").ok_or_else(missing)?;
    let loaded = LoadedEncoder::load(layers, console)?;
    check_labels(loaded.encoder.facts().output)?;
    let instruction = layers.text("instruction");
    let pair = |text: &String| loaded.encoder.frame_pair(query, text, instruction, loaded.limit);
    let framed: Result<Vec<_>, _> = texts.iter().map(pair).collect();
    let framed = framed?;
    let left_out = loaded.truncated_tokens(&framed, console);
    let (inputs, tokens) = inputs(framed);
    let scores: Vec<f32> = loaded.encoder.score(inputs)?.concat();
    if console.json {
        return console.value(&RerankOutput { scores, tokens, left_out });
    }
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order.into_iter().try_for_each(|i| console.line(&format!("{:>10.4} {}", scores[i], texts[i])))
}

/// Refuses a model that sorts texts into classes: none of its scores says how well one answers.
fn check_labels(output: ModelOutput) -> Result<(), CliFailure> {
    match output {
        ModelOutput::Scores { labels } if labels != 1 => Err(ModelError::Unsupported {
            what: format!("one score of a model with {labels} labels"),
            why: "its configuration names several in id2label; use a model that was made to rank".into(),
        }
        .into()),
        _ => Ok(()),
    }
}
