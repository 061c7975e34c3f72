//! Texts through an encoder, with the number of their tokens.

use crate::error::ApiError;
use crate::models::{Held, Served};
use crate::prompt::Prompt;
use yirage_engine::EncoderInput;
use yirage_model::arch::ModelOutput;
use yirage_session::TextEncoder;

/// Vectors of texts, and the tokens of all.
///
/// # Errors
/// A model that gives none; a text that is too long.
pub(crate) fn embed(held: &Held, inputs: &[Prompt]) -> Result<(Vec<Vec<f32>>, usize), ApiError> {
    let encoder = encoder(held, "no vectors")?;
    let ModelOutput::Hidden { .. } = encoder.facts().output else {
        return Err(unfit(held, "scores pairs of texts; ask for them at /v1/rerank"));
    };
    let framed = inputs.iter().map(|input| match input {
        Prompt::Text(text) => {
            let framed = encoder.tokenizer().frame(text, None);
            framed.map(|framed| EncoderInput { ids: framed.ids, types: framed.types })
        }
        Prompt::Ids(ids) => Ok(EncoderInput { types: vec![0; ids.len()], ids: ids.clone() }),
    });
    let inputs = framed.collect::<Result<Vec<_>, _>>().map_err(|e| ApiError::field("input", e.to_string()))?;
    let tokens = inputs.iter().map(|input| input.ids.len()).sum();
    Ok((encoder.embed(inputs, encoder.facts().embedding)?, tokens))
}

/// How well each text answers a query, and the tokens of all pairs.
///
/// # Errors
/// A model that does not say; a pair that is too long.
pub(super) fn scores(held: &Held, pairs: &[(&str, &str)]) -> Result<(Vec<f32>, usize), ApiError> {
    let encoder = encoder(held, "no scores")?;
    match encoder.facts().output {
        ModelOutput::Scores { labels: 1 } => {}
        ModelOutput::Scores { .. } => {
            return Err(unfit(held, "sorts texts into classes; none of its scores ranks them"));
        }
        _ => return Err(unfit(held, "gives vectors; ask for them at /v1/embeddings")),
    }
    let mut inputs = Vec::with_capacity(pairs.len());
    for (query, text) in pairs {
        let framed = encoder.tokenizer().frame_pair(query, text, None).map_err(|e| ApiError::invalid(e.to_string()))?;
        inputs.push(EncoderInput { ids: framed.ids, types: framed.types });
    }
    let tokens = inputs.iter().map(|input| input.ids.len()).sum();
    Ok((encoder.score(inputs)?.concat(), tokens))
}

fn encoder<'a>(held: &'a Held, lacks: &str) -> Result<&'a TextEncoder, ApiError> {
    match &*held.served {
        Served::Encoder(encoder) => Ok(encoder),
        Served::Generator(_) => {
            Err(unfit(held, &format!("generates text and gives {lacks}; serve an encoder beside it")))
        }
    }
}

fn unfit(held: &Held, why: &str) -> ApiError {
    ApiError::field("model", format!("the model `{}` {why}", held.entry.name()))
}
