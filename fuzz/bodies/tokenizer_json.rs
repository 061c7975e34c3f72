//! Any bytes as a `tokenizer.json`: loading ends in a tokenizer or a typed error, and what loads can be used. Shared by
//! the fuzz target and the test that replays its corpus.

use yirage_model::tokenizer::Tokenizer;

/// Loads `data`; encodes, frames and decodes a part of it with what was loaded.
pub(crate) fn run(data: &[u8]) {
    if let Ok(tokenizer) = Tokenizer::from_json(data, "fuzz") {
        let text = String::from_utf8_lossy(&data[..data.len().min(256)]);
        if let Ok(ids) = tokenizer.encode(&text, tokenizer.default_options()) {
            let _text = tokenizer.decode(&ids, true);
        }
        if let Ok(pair) = tokenizer.frame_pair(&text, "a", Some(8)) {
            assert_eq!(pair.ids.len(), pair.types.len());
        }
    }
}
