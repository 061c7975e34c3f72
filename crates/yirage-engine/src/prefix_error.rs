//! What can go wrong with beginnings that are put into the cache.

use crate::kv::OutOfBlocks;
use thiserror::Error;

/// Why a beginning of a sequence cannot be read from the cache or put into it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrefixError {
    /// Nothing is cached.
    #[error("the engine keeps no beginnings of sequences; load it with the option `prefix_cache`")]
    NoCache,
    /// No whole blocks.
    #[error(
        "expected tokens of one or more whole blocks of {block}, got {tokens} tokens; cut the beginning at a multiple of {block}"
    )]
    Length {
        /// Tokens given.
        tokens: usize,
        /// Positions of a block.
        block: usize,
    },
    /// More than a sequence may have.
    #[error(
        "expected at most {most} tokens, the context of the engine, got {tokens}; load the model with a longer context"
    )]
    TooLong {
        /// Tokens given.
        tokens: usize,
        /// Tokens of the context.
        most: usize,
    },
    /// A name that is none of the model's caches.
    #[error("the model has no layer whose cache is named `{name}`")]
    NoLayer {
        /// The name.
        name: String,
    },
    /// Something is missing.
    #[error("expected the contents of every layer's cache, got none of `{name}`")]
    LayerMissing {
        /// The first that is missing.
        name: String,
    },
    /// The cache is too small, or in use.
    #[error(transparent)]
    OutOfBlocks(#[from] OutOfBlocks),
}
