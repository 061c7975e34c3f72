//! The tests of this crate that need no program of their own, as one: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod arch_bedtime;
mod arch_chunks;
mod arch_encoders;
mod arch_gemma4;
mod arch_hostile;
mod arch_models;
mod arch_mtp;
mod arch_rope;
mod arch_stages;
mod arch_step_graph;
mod arch_support;
mod arch_tiny;
mod arch_tinyrandom;
mod arch_weights;
mod chat_golden;
mod chat_hostile;
mod chat_language;
mod config_contradictions;
mod config_lint;
mod config_mutations;
mod config_tolerated;
mod corpus;
mod decoded_ggml;
mod decoded_quantized;
mod gguf_reader;
mod glm_vocabulary;
mod tokenizer_budgets;
mod tokenizer_golden;
mod tokenizer_hostile;
mod tokenizer_oracle;
mod tokenizer_reference;
mod tokenizer_support;
mod tokenizer_wordpiece;
