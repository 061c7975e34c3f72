//! Finds real tokenizers and golden files, and skips loudly where a machine has none.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use yirage_model::gguf::Gguf;
use yirage_model::tokenizer::{GgufVocab, Tokenizer};

/// `../shared/<path>` beside the checkout.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    found(root)
}

/// A file of `$YIRAGE_MODELS`.
pub(crate) fn model_file(path: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("YIRAGE_MODELS") else {
        eprintln!("SKIPPED: YIRAGE_MODELS is not set, so {path} is not tested");
        return None;
    };
    found(Path::new(&folder).join(path))
}

fn found(path: PathBuf) -> Option<PathBuf> {
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} does not exist", path.display());
    None
}

pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

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

/// The tokenizer of a golden column, where this machine has it.
pub(crate) fn column(name: &str) -> Option<Tokenizer> {
    match name {
        "gguf:gemma-3-270m-q4_k_m" => Some(from_gguf(&model_file("gemma-3-270m-q4_k_m.gguf")?)),
        "gguf:SmolLM2-135M-Instruct.Q4_1" => Some(from_gguf(&model_file("smollm2-135m-instruct-q4_1.gguf")?)),
        "gguf:stories260K" => Some(from_gguf(&shared("models/stories260K/stories260K-f32.gguf")?)),
        "stories260K" => Some(stories_from_list(&shared("models/stories260K/hf/spm_vocab.json")?)),
        other => Some(from_json(&model_file(&format!("tokenizers/{other}/tokenizer.json"))?)),
    }
}

/// A SentencePiece vocabulary given as a plain list of pieces and scores.
fn stories_from_list(path: &Path) -> Tokenizer {
    let list = json(path);
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
