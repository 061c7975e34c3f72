#![no_main]

#[path = "../bodies/serve_form.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
