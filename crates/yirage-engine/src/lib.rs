//! The engine: scheduler, KV manager, sampling, runner, request streams.
#![forbid(unsafe_code)]

pub mod kv;
pub mod limits;
pub mod scheduler;
