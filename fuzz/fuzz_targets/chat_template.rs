//! Any text as a chat template: compiling and rendering end in text or a typed error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yirage_model::chat::{ChatInputs, ChatTemplate};

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    let messages = [serde_json::json!({"role": "user", "content": "hi"})];
    if let Ok(template) = ChatTemplate::new("fuzz", source) {
        let _rendered = template.render(&ChatInputs::new(&messages));
    }
});
