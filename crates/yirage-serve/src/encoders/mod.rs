//! Vectors and scores of texts, by encoders.

pub(crate) mod embeddings;
mod encode;
pub(crate) mod rerank;
pub(crate) mod score;

pub(crate) use encode::embed;
