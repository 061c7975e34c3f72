#![no_main]

#[path = "../bodies/plan_file.rs"]
mod plan_file;
#[path = "../bodies/plan_text.rs"]
#[allow(dead_code)] // its target is what is used of it
mod plan_text;

libfuzzer_sys::fuzz_target!(|data: &[u8]| plan_file::run(data));
