//! What can be wrong with what an encoder is given.

use thiserror::Error;

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
    #[error("token id {id} at place {at} of input {input}: the model has {vocabulary} tokens, counted from 0")]
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
    #[error("type {of_type} at place {at} of input {input}: the model has {types} types of tokens, counted from 0")]
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
