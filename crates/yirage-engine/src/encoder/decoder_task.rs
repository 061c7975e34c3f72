//! Which decoders are made for vectors of texts, and which for scores of pairs; and how a score is made.
//!
//! It knows files and numbers, and nothing of how a model is computed.

use super::pool::Embedding;
use crate::error::EngineError;
use crate::options::DEFAULT_CONTEXT;
use yirage_model::arch;
use yirage_model::config::{Reranker, SentenceConfig};
use yirage_model::{Checkpoint, RawConfig};

/// What a decoder is made for beside generating text.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderTask {
    /// How vectors are made.
    pub embedding: Embedding,
    /// What makes a score, where it is made for scores.
    pub head: Option<ScoreHead>,
    /// Elements of a hidden state.
    pub width: u32,
    /// Tokens of the longest text that it is meant for, where its files say so and that is fewer than it would have anyway.
    pub longest: Option<u32>,
}

/// From what a decoder gives of a pair's last token to a score.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreHead {
    /// From logits: the probability of one token beside the other's.
    Tokens {
        /// Says yes.
        yes: u32,
        /// Says no.
        no: u32,
    },
    /// From a hidden state: rows of weights, a label each. One is a logit; of two the first's probability counts.
    Rows(Vec<Vec<f32>>),
}

impl ScoreHead {
    /// The score of a row: from 0 to 1; none where it has no such elements.
    pub fn score(&self, row: &[f32]) -> Option<f32> {
        let logit = match self {
            ScoreHead::Tokens { yes, no } => {
                let of = |token: u32| row.get(token as usize).map(|&x| f64::from(x));
                of(*yes)? - of(*no)?
            }
            ScoreHead::Rows(rows) => {
                let of = |weights: &Vec<f32>| -> f64 {
                    weights.iter().zip(row).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum()
                };
                match &rows[..] {
                    [one] => of(one),
                    [first, second] => of(first) - of(second),
                    _ => return None,
                }
            }
        };
        Some((1.0 / (1.0 + libm::exp(-logit))) as f32)
    }
}

impl DecoderTask {
    /// What the files of a decoder say that it is made for; none for a model that generates text. `token` finds the id of a
    /// text that is one token.
    ///
    /// # Errors
    /// Files that are there and wrong; a reranker without its tokens.
    pub fn of(
        checkpoint: &Checkpoint,
        token: impl Fn(&str) -> Option<u32>,
    ) -> Result<Option<DecoderTask>, EngineError> {
        let config = RawConfig::load(checkpoint)?;
        if arch::is_encoder(config.model_type()?) {
            return Ok(None);
        }
        let sentence = SentenceConfig::load(checkpoint)?;
        let reranker = Reranker::load(checkpoint, &config)?;
        if reranker.is_none() && !sentence.stated {
            return Ok(None);
        }
        let head = match reranker {
            None => None,
            Some(reranker) => Some(match reranker.rows(checkpoint)? {
                Some(rows) => ScoreHead::Rows(rows),
                None => {
                    let [yes, no] = [token("yes"), token("no")];
                    let missing = || reranker.without_tokens();
                    ScoreHead::Tokens { yes: yes.ok_or_else(missing)?, no: no.ok_or_else(missing)? }
                }
            }),
        };
        // A token is sampled behind a text, which has a position too.
        let room =
            config.opt_u32("max_position_embeddings")?.map_or(DEFAULT_CONTEXT, |context| context.min(DEFAULT_CONTEXT));
        let longest = sentence.longest.filter(|longest| *longest < room);
        let embedding = Embedding { pooling: sentence.pooling, normalise: sentence.normalise };
        Ok(Some(DecoderTask { embedding, head, width: config.u32("hidden_size")?, longest }))
    }
}

/// Whether files say that a decoder is made for vectors or scores.
///
/// # Errors
/// As [`DecoderTask::of`].
pub fn is_embedding_decoder(checkpoint: &Checkpoint) -> Result<bool, EngineError> {
    let config = RawConfig::load(checkpoint)?;
    if arch::is_encoder(config.model_type()?) {
        return Ok(false);
    }
    Ok(SentenceConfig::load(checkpoint)?.stated || Reranker::load(checkpoint, &config)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_the_share_of_yes() {
        let close = |a: Option<f32>, b: f64| (f64::from(a.unwrap()) - b).abs() < 1e-7;
        let tokens = ScoreHead::Tokens { yes: 2, no: 0 };
        assert!(close(tokens.score(&[1.0, 9.0, 3.0]), 1.0 / (1.0 + (-2.0f64).exp())));
        assert_eq!(tokens.score(&[1.0]), None);
        let one = ScoreHead::Rows(vec![vec![1.0, -1.0]]);
        assert!(close(one.score(&[0.5, 0.25]), 1.0 / (1.0 + (-0.25f64).exp())));
        let two = ScoreHead::Rows(vec![vec![1.0, 0.0], vec![0.0, 1.0]]);
        assert!(close(two.score(&[0.5, 0.25]), 1.0 / (1.0 + (-0.25f64).exp())));
        assert_eq!(ScoreHead::Rows(Vec::new()).score(&[1.0]), None);
    }
}
