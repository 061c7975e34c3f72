//! Models on disk: safetensors, GGUF, configurations, architectures, tokenizers, chat templates.
#![forbid(unsafe_code)]
