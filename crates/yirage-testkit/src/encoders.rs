//! Tiny encoders with a tokenizer, and what others make of texts with them and with a real one.
//!
//! `fixtures/encoders/NAME.json` has a model's configuration, the recipe of each tensor, its other files, and results of
//! transformers and of the reference library of tokenizers; `tools/oracle/make_encoders.py` makes them.

use crate::{fixtures, recipe};
use serde_json::Value;
use std::path::PathBuf;

/// Those that give vectors and those that score pairs.
pub const NAMES: &[&str] =
    &["embed", "score", "roberta-embed", "roberta-score", "modernbert-embed", "modernbert-score"];

/// Decoders that give vectors, and those that score pairs; `tools/oracle/make_decoder_encoders.py` makes them.
pub const DECODERS: &[&str] = &["qwen3-embedding", "mistral-embedding", "qwen3-reranker", "qwen3-ranking-head"];

/// `texts` and `pairs` with their ids; `cases` with what the model gives.
#[must_use]
pub fn golden(name: &str) -> Value {
    let text = match name {
        "embed" => include_str!("../fixtures/encoders/embed.json"),
        "score" => include_str!("../fixtures/encoders/score.json"),
        "roberta-embed" => include_str!("../fixtures/encoders/roberta-embed.json"),
        "roberta-score" => include_str!("../fixtures/encoders/roberta-score.json"),
        "modernbert-embed" => include_str!("../fixtures/encoders/modernbert-embed.json"),
        "modernbert-score" => include_str!("../fixtures/encoders/modernbert-score.json"),
        "qwen3-embedding" => include_str!("../fixtures/encoders/qwen3-embedding.json"),
        "mistral-embedding" => include_str!("../fixtures/encoders/mistral-embedding.json"),
        "qwen3-reranker" => include_str!("../fixtures/encoders/qwen3-reranker.json"),
        "qwen3-ranking-head" => include_str!("../fixtures/encoders/qwen3-ranking-head.json"),
        other => panic!("there is no tiny encoder {other}"),
    };
    serde_json::from_str(text).unwrap()
}

/// Vectors of texts by sentence-transformers with all-MiniLM-L6-v2.
#[must_use]
pub fn minilm() -> Value {
    serde_json::from_str(include_str!("../fixtures/encoders/minilm.json")).unwrap()
}

/// The model's folder: config.json, model.safetensors in f32, tokenizer.json, and the files of sentence-transformers.
#[must_use]
pub fn model(name: &str) -> PathBuf {
    let of = golden(name);
    let others = of["files"].as_object().unwrap();
    let mut files: Vec<(&str, Vec<u8>)> =
        others.iter().map(|(file, value)| (file.as_str(), value.to_string().into_bytes())).collect();
    files.push(("config.json", of["config"].to_string().into_bytes()));
    files.push(("model.safetensors", recipe::checkpoint(&of)));
    fixtures::folder(&format!("encoder-{name}"), &files)
}

#[cfg(test)]
mod tests {
    use super::{DECODERS, NAMES, golden};
    use crate::recipe;

    #[test]
    fn python_made_the_same_bytes_of_every_model() {
        for name in NAMES.iter().chain(DECODERS) {
            let of = golden(name);
            assert_eq!(recipe::digest(&of), of["sha256"].as_str().unwrap(), "{name}");
        }
    }
}
