//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod adapters;
mod clients;
mod continued;
mod crowds;
mod fields;
mod forms;
mod fuzz_replay;
mod lifecycle;
mod model_ids;
mod openai;
mod openapi;
mod operations;
mod pairs;
mod pictures;
mod prefill;
mod protocols;
mod refusals;
mod samplers;
mod support;
mod templates;
mod tool_calls;
