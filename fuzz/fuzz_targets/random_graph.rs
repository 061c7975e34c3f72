#![no_main]

#[path = "../bodies/random_graph.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
