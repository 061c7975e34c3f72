//! What llama.cpp's server has beside OpenAI's interface; /tokenize in vLLM's form as well.

mod active;
pub(crate) mod adapters;
pub(crate) mod completion;
mod completion_answer;
mod cut;
mod prompts;
pub(crate) mod props;
pub(crate) mod slots;
pub(crate) mod tokenize;
