//! The engine: scheduler, KV manager, sampling, runner, request streams.
#![forbid(unsafe_code)]
