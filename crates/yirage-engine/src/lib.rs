//! The engine: scheduler, KV manager, sampling, runner, request streams.
#![forbid(unsafe_code)]

pub mod kv;
pub mod limits;
pub mod sampling;
pub mod scheduler;
pub mod text;
