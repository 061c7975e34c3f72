//! The tests of this crate that need no program of their own, as one: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod adapters;
mod constraints;
mod context_limit;
mod decoded_weights;
mod determinism;
mod doc_examples;
mod dynamic_rope;
mod encoder;
mod forward;
mod fuzz_replay;
mod given;
mod golden_bedtime;
mod golden_large;
mod golden_support;
mod golden_tinyrandom;
mod hidden_states;
mod int8_cache;
mod kept_plans;
mod kept_weights;
mod mtp;
mod option_effects;
mod pipeline;
mod request_effects;
mod sampling_batch;
mod sampling_chain;
mod sampling_choice;
mod sampling_golden;
mod sampling_params;
mod sampling_rng;
mod speculation;
mod text_stop;
