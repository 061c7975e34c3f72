#![no_main]

#[path = "../bodies/packed_header.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
