//! Loads tokenizers from files.

use std::path::Path;
use std::sync::Arc;

use yirage_model::gguf::Gguf;
use yirage_model::tokenizer::{GgufVocab, Tokenizer};
use yirage_testkit::{absent, json};

pub(crate) fn header(path: &Path) -> Arc<Gguf> {
    let file = yirage_mmap::MappedFile::open(path).unwrap();
    Arc::new(Gguf::parse(file.bytes(), &path.display().to_string()).unwrap())
}

pub(crate) fn from_gguf(path: &Path) -> Tokenizer {
    Tokenizer::from_gguf(GgufVocab::from_header(&header(path)).unwrap()).unwrap()
}

pub(crate) fn from_json(path: &Path) -> Tokenizer {
    Tokenizer::from_json(&std::fs::read(path).unwrap(), "tokenizer.json").unwrap()
}

/// The tokenizer of a golden column that is not ours.
pub(crate) fn column(name: &str) -> Tokenizer {
    match name {
        "gguf:gemma-3-270m-q4_k_m" => from_gguf(&absent::model("gemma-3-270m-q4_k_m.gguf")),
        "gguf:SmolLM2-135M-Instruct.Q4_1" => from_gguf(&absent::model("smollm2-135m-instruct-q4_1.gguf")),
        "gguf:stories260K" => from_gguf(&absent::shared("models/stories260K/stories260K-f32.gguf")),
        "stories260K" => stories_from_list(&absent::shared("models/stories260K/hf/spm_vocab.json")),
        other => from_json(&absent::model(&format!("tokenizers/{other}/tokenizer.json"))),
    }
}

/// A SentencePiece vocabulary given as a plain list of pieces and scores.
fn stories_from_list(path: &Path) -> Tokenizer {
    let list = json::read(path);
    let entries = list["vocab"].as_array().unwrap();
    let tokens: Vec<&str> = entries.iter().map(|e| e[0].as_str().unwrap()).collect();
    let scores = entries.iter().map(|e| e[1].as_f64().unwrap() as f32).collect();
    let mut types = vec![1; tokens.len()];
    (types[0], types[1], types[2]) = (2, 3, 3);
    types[3..259].fill(6);
    Tokenizer::from_gguf(GgufVocab {
        name: "spm_vocab.json",
        model: "llama",
        tokens,
        scores: Some(scores),
        token_types: Some(types),
        ..GgufVocab::default()
    })
    .unwrap()
}
