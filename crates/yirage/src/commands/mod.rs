//! The commands, one file each.

mod answer;
pub(crate) mod backend;
pub(crate) mod bench;
pub(crate) mod bench_graph;
pub(crate) mod cache;
pub(crate) mod chat;
mod chat_input;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod embed;
mod encoding;
pub(crate) mod explain;
pub(crate) mod graph;
pub(crate) mod inspect;
mod limits;
pub(crate) mod list;
pub(crate) mod logits;
pub(crate) mod perplexity;
pub(crate) mod plan;
pub(crate) mod pull;
pub(crate) mod rerank;
pub(crate) mod rm;
pub(crate) mod run;
mod score;
pub(crate) mod tokenize;
