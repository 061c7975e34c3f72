//! OpenAI's interface, with the fields that vLLM and llama.cpp add to it.

mod active;
pub(crate) mod chat;
mod chat_answer;
mod chat_fields;
pub(crate) mod completions;
mod completions_answer;
pub(crate) mod effort;
mod functions;
pub(crate) mod hints;
pub(crate) mod logprobs;
pub(crate) mod models;

pub(crate) use chat_fields::CHAT;
