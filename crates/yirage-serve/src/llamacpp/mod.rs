//! What llama.cpp's server has beside OpenAI's interface; /tokenize in vLLM's form as well.

pub(crate) mod adapters;
pub(crate) mod completion;
mod cut;
pub(crate) mod props;
pub(crate) mod slots;
pub(crate) mod tokenize;
