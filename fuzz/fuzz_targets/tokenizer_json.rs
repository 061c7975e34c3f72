//! Any bytes as a `tokenizer.json`: loading ends in a tokenizer or a typed error, and what loads can be used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yirage_model::tokenizer::Tokenizer;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tokenizer) = Tokenizer::from_json(bytes, "fuzz") {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
        if let Ok(ids) = tokenizer.encode(&text, tokenizer.default_options()) {
            let _text = tokenizer.decode(&ids, true);
        }
    }
});
