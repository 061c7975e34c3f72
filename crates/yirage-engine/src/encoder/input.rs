//! What an encoder computes.

use super::error::EncoderError;

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
pub(super) struct Bounds {
    pub(super) tokens: u32,
    pub(super) vocabulary: u32,
    pub(super) types: u32,
}

impl Bounds {
    /// Checks input `input` of a call.
    pub(super) fn check(&self, input: usize, of: &EncoderInput) -> Result<(), EncoderError> {
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
        match of.types.iter().position(|&of_type| of_type >= self.types) {
            Some(at) => Err(EncoderError::UnknownType { input, at, of_type: of.types[at], types: self.types }),
            None => Ok(()),
        }
    }
}
