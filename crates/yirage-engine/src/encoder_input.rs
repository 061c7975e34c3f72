//! What an encoder is given, and what can be wrong with it.
//!
//! Knows nothing of how it is computed.

use thiserror::Error;

/// An input: a text, or two of them, as tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncoderInput {
    /// Tokens.
    pub ids: Vec<u32>,
    /// The type of each token: which of two texts it belongs to.
    pub types: Vec<u32>,
}

/// What a model takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) tokens: u32,
    pub(crate) vocabulary: u32,
    /// Types of tokens that the model tells apart; 0 where it looks at none.
    pub(crate) types: u32,
}

impl Bounds {
    /// Checks input `input` of a call.
    pub(crate) fn check(&self, input: usize, of: &EncoderInput) -> Result<(), EncoderError> {
        let (tokens, types) = (of.ids.len(), of.types.len());
        if tokens == 0 {
            return Err(EncoderError::Empty { input });
        }
        if tokens != types {
            return Err(EncoderError::Types { input, tokens, types });
        }
        if tokens > self.tokens as usize {
            return Err(EncoderError::TooLong { input, tokens, most: self.tokens });
        }
        if let Some(at) = of.ids.iter().position(|&id| id >= self.vocabulary) {
            return Err(EncoderError::UnknownToken { input, at, id: of.ids[at], vocabulary: self.vocabulary });
        }
        match of.types.iter().position(|&of_type| self.types > 0 && of_type >= self.types) {
            Some(at) => Err(EncoderError::UnknownType { input, at, of_type: of.types[at], types: self.types }),
            None => Ok(()),
        }
    }
}

/// An input, or a size of steps, that cannot be computed. Inputs of a call are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EncoderError {
    /// A size of steps that there is none of.
    #[error("a step of {tokens} tokens: choose from 1 to {most}, and a model whose longest text fits into that")]
    Step {
        /// Tokens of a step.
        tokens: u32,
        /// Most of them.
        most: u32,
    },
    /// Nothing to compute.
    #[error("input {input} has no token; give it some text")]
    Empty {
        /// Which input.
        input: usize,
    },
    /// More tokens than the model takes.
    #[error(
        "input {input} has {tokens} tokens, the model takes {most}; shorten it, split it, or have its end left out"
    )]
    TooLong {
        /// Which input.
        input: usize,
        /// Its tokens.
        tokens: usize,
        /// What the model takes.
        most: u32,
    },
    /// Tokens without a type, or types without a token.
    #[error("input {input} has {tokens} tokens and types for {types}; give each token its type")]
    Types {
        /// Which input.
        input: usize,
        /// Its tokens.
        tokens: usize,
        /// Its types.
        types: usize,
    },
    /// A token id the model does not have.
    #[error(
        "token id {id} at place {at} of input {input}: the model has {vocabulary} tokens, counted from 0; encode with the model's own tokenizer"
    )]
    UnknownToken {
        /// Which input.
        input: usize,
        /// Where in it.
        at: usize,
        /// The id.
        id: u32,
        /// Tokens of the model.
        vocabulary: u32,
    },
    /// A type of tokens the model does not have.
    #[error(
        "type {of_type} at place {at} of input {input}: the model has {types} types of tokens, counted from 0; give types below {types}"
    )]
    UnknownType {
        /// Which input.
        input: usize,
        /// Where in it.
        at: usize,
        /// The type.
        of_type: u32,
        /// Types of the model.
        types: u32,
    },
}
