//! Texts through an encoder, with the number of their tokens.

use crate::error::ApiError;
use crate::models::{ModelLease, Served};
use crate::prompt::PromptInput;
use yirage_engine::EncoderInput;
use yirage_model::arch::ModelOutput;
use yirage_session::{SessionError, TextEncoder};

/// Vectors of texts, and the tokens of all. With `dimensions` they have so many, and the length 1 again. `prompt` names
/// what stands before each text.
///
/// # Errors
/// A model that gives none; a text that is too long or empty; more dimensions than there are.
pub(crate) fn embed(
    held: &ModelLease,
    inputs: &[PromptInput],
    dimensions: Option<u32>,
    prompt: Option<&str>,
) -> Result<(Vec<Vec<f32>>, usize), ApiError> {
    let encoder = encoder(held, "no vectors")?;
    let ModelOutput::Hidden { width } = encoder.facts().output else {
        return Err(unfit(held, "scores pairs of texts; ask for them at /v1/rerank"));
    };
    if let Some(wanted) = dimensions.filter(|wanted| !(1..=width).contains(wanted)) {
        let what = format!("`dimensions` is {wanted}; a vector of the model has {width}, and 1 to {width} can be had");
        return Err(ApiError::field("dimensions", what));
    }
    let framed = inputs.iter().map(|input| match input {
        PromptInput::Text(text) => {
            let framed = encoder.frame(text, prompt, None);
            framed.map(|framed| EncoderInput { ids: framed.ids, types: framed.types })
        }
        PromptInput::Ids(ids) => Ok(EncoderInput { types: vec![0; ids.len()], ids: ids.clone() }),
    });
    let field = |e: SessionError| match e {
        SessionError::Prompt { .. } => ApiError::field("prompt_name", e.to_string()),
        _ => ApiError::field("input", e.to_string()),
    };
    let inputs = framed.collect::<Result<Vec<_>, _>>().map_err(field)?;
    let tokens = inputs.iter().map(|input| input.ids.len()).sum();
    let mut vectors = encoder.embed(inputs, encoder.facts().embedding)?;
    if let Some(wanted) = dimensions {
        vectors.iter_mut().for_each(|vector| shorten(vector, wanted as usize));
    }
    Ok((vectors, tokens))
}

/// Keeps the first dimensions, and gives what is left the length 1. A vector of zeros stays one.
fn shorten(vector: &mut Vec<f32>, dimensions: usize) {
    vector.truncate(dimensions);
    let length = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
}

/// Refuses a text of nothing, as OpenAI's server does: it has no meaning that a vector could be of.
///
/// # Errors
/// The first one, by its place.
pub(crate) fn check_inputs(name: &str, inputs: &[PromptInput]) -> Result<(), ApiError> {
    let empty = |input: &PromptInput| match input {
        PromptInput::Text(text) => text.is_empty(),
        PromptInput::Ids(ids) => ids.is_empty(),
    };
    let Some(at) = inputs.iter().position(empty) else { return Ok(()) };
    let place = if inputs.len() == 1 { name.to_owned() } else { format!("{name}[{at}]") };
    Err(ApiError::field(&place, format!("`{place}` is empty; leave it out or send a text")))
}

/// How well each text answers a query, and the tokens of all pairs.
///
/// # Errors
/// A model that does not say; a pair that is too long.
pub(super) fn score_pairs(
    held: &ModelLease,
    pairs: &[(&str, &str)],
    instruction: Option<&str>,
) -> Result<(Vec<f32>, usize), ApiError> {
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
        let framed = encoder.frame_pair(query, text, instruction, None).map_err(|e| match e {
            SessionError::Instruction => ApiError::field("instruction", e.to_string()),
            _ => ApiError::invalid(e.to_string()),
        })?;
        inputs.push(EncoderInput { ids: framed.ids, types: framed.types });
    }
    let tokens = inputs.iter().map(|input| input.ids.len()).sum();
    Ok((encoder.score(inputs)?.concat(), tokens))
}

fn encoder<'a>(held: &'a ModelLease, lacks: &str) -> Result<&'a TextEncoder, ApiError> {
    match &*held.served {
        Served::Encoder(encoder) => Ok(encoder),
        Served::Generator(_) => {
            Err(unfit(held, &format!("generates text and gives {lacks}; serve an encoder beside it")))
        }
    }
}

fn unfit(held: &ModelLease, why: &str) -> ApiError {
    ApiError::field("model", format!("the model `{}` {why}", held.entry.name()))
}
