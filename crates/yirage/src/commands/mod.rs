//! The commands, one file each.

pub(crate) mod logits;
pub(crate) mod perplexity;
pub(crate) mod run;
mod score;
pub(crate) mod tokenize;
