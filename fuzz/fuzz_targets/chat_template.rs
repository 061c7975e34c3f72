#![no_main]

#[path = "../bodies/chat_template.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
