//! Tokenizers in converted files: the same tokens, or a refusal that names what a file cannot state.

use crate::with_config;
use serde_json::{Value, json};
use std::path::Path;
use yirage_convert::{ConversionPlan, ConvertError, ConvertOptions, ModelTexts, WrittenGguf};
use yirage_model::Checkpoint;
use yirage_model::chat::{TemplateSources, Templates};
use yirage_model::gguf::{Gguf, GgufValue};
use yirage_model::tokenizer::{EncodeOptions, GgufVocab, Tokenizer};
use yirage_testkit::bedtime;
use yirage_testkit::scratch::ScratchFolder;

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The character that stands for a byte in vocabularies of bytes.
fn byte_char(byte: u8) -> char {
    let shown = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if shown(byte) {
        return byte.into();
    }
    char::from_u32(256 + (0..byte).filter(|&b| !shown(b)).count() as u32).unwrap()
}

/// A tokenizer of bytes with a few rules and two added tokens.
fn byte_level(pre_tokenizer: &Value, ignore_merges: bool) -> Value {
    let mut tokens: Vec<String> = (0..=255).map(|b| byte_char(b).to_string()).collect();
    let mut merges = Vec::new();
    for (left, right) in
        [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("\u{120}", "a"), ("1", "2"), ("12", "3")]
    {
        merges.push(json!([left, right]));
        tokens.push(format!("{left}{right}"));
    }
    let vocab: serde_json::Map<String, Value> = tokens.iter().cloned().zip((0..).map(Value::from)).collect();
    let added = |id: usize, content: &str, special: bool| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": special})
    };
    json!({
        "added_tokens": [added(tokens.len(), "<|end|>", true), added(tokens.len() + 1, "<tool>", false)],
        "normalizer": null, "pre_tokenizer": pre_tokenizer, "post_processor": null,
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "ignore_merges": ignore_merges, "vocab": vocab, "merges": merges}
    })
}

fn bytes_behind(pattern: &str) -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})
}

fn converted(
    model: &Path,
    tokenizer: &Tokenizer,
    templates: &Templates,
    to: &Path,
) -> Result<WrittenGguf, ConvertError> {
    let checkpoint = Checkpoint::open(model)?;
    let texts = ModelTexts { tokenizer, templates };
    ConversionPlan::new(&checkpoint, Some(texts), &ConvertOptions::default())?.write(to, true, &mut |_| {})
}

/// Converts a tiny model with this tokenizer; gives the file's header.
fn with_tokenizer(folder: &ScratchFolder, tokenizer: &Value) -> Result<Gguf, ConvertError> {
    let model = with_config(folder, "qwen2", &json!({"eos_token_id": [263, 0], "vocab_size": 256}));
    let tokenizer = Tokenizer::from_json(tokenizer.to_string().as_bytes(), "tokenizer.json")?;
    let file = folder.0.join("out.gguf");
    converted(&model, &tokenizer, &Templates::default(), &file)?;
    Ok(Gguf::parse(&std::fs::read(&file).unwrap(), "out.gguf")?)
}

#[test]
fn the_small_model_makes_the_same_tokens_and_keeps_its_templates() {
    let folder = ScratchFolder::new("convert-bedtime");
    let model = bedtime::safetensors_with_tokenizer();
    let json = std::fs::read(model.join("tokenizer.json")).unwrap();
    let tokenizer = Tokenizer::from_json(&json, "tokenizer.json").unwrap();
    let additional = vec![("tool_use", "tools")];
    let sources = TemplateSources { jinja: Some("hello"), additional, ..TemplateSources::default() };
    let templates = Templates::resolve(&sources).unwrap();
    let file = folder.0.join("out.gguf");
    converted(&model, &tokenizer, &templates, &file).unwrap();
    let gguf = Gguf::parse(&std::fs::read(&file).unwrap(), "out.gguf").unwrap();
    let again = Tokenizer::from_gguf(GgufVocab::from_header(&gguf).unwrap()).unwrap();
    for case in bedtime::golden()["texts"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        for add_special in [true, false] {
            let options = EncodeOptions { add_special, parse_special: false };
            let (read, written) = (tokenizer.encode(text, options).unwrap(), again.encode(text, options).unwrap());
            assert_eq!(read, written, "{text:?}");
            assert_eq!(tokenizer.decode(&read, false), again.decode(&written, false));
        }
    }
    let text = |key: &str| gguf.get(key).and_then(GgufValue::as_str).map(str::to_owned);
    assert_eq!(text("tokenizer.ggml.model").as_deref(), Some("llama"));
    assert_eq!(text("tokenizer.chat_template").as_deref(), Some("hello"));
    assert_eq!(text("tokenizer.chat_template.tool_use").as_deref(), Some("tools"));
    assert_eq!(gguf.get("tokenizer.ggml.add_bos_token").and_then(GgufValue::as_bool), Some(true));
    assert_eq!((tokenizer.bos(), tokenizer.special_ids().unk), (again.bos(), again.special_ids().unk));
}

#[test]
fn rules_of_splitting_have_the_names_that_other_programs_know() {
    let folder = ScratchFolder::new("convert-rules");
    let digits = json!({"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": true}, {"type": "ByteLevel", "add_prefix_space": false}]});
    for (pre_tokenizer, ignore_merges, name) in [
        (bytes_behind(LLAMA3), true, "llama-bpe"),
        (bytes_behind(LLAMA3), false, "dbrx"),
        (bytes_behind(QWEN2), false, "qwen2"),
        (json!({"type": "ByteLevel", "add_prefix_space": false}), false, "gpt-2"),
        (digits, false, "starcoder"),
    ] {
        let mut tokenizer = byte_level(&pre_tokenizer, ignore_merges);
        // As many tokens as the tiny model has rows: those of the bytes that no text has are left out.
        shrink(&mut tokenizer);
        let gguf = with_tokenizer(&folder, &tokenizer).unwrap();
        assert_eq!(gguf.get("tokenizer.ggml.pre").and_then(GgufValue::as_str), Some(name));
    }
}

/// Leaves as many tokens as the tiny models have rows: ten bytes that no UTF-8 has give theirs up.
fn shrink(tokenizer: &mut Value) {
    let vocab = tokenizer["model"]["vocab"].as_object_mut().unwrap();
    for byte in (0xf5..=0xfe).map(byte_char) {
        vocab.remove(&byte.to_string());
    }
    let mut order: Vec<(u64, String)> = vocab.iter().map(|(text, id)| (id.as_u64().unwrap(), text.clone())).collect();
    order.sort();
    for (id, (_, text)) in order.iter().enumerate() {
        vocab[text] = id.into();
    }
    for (i, added) in tokenizer["added_tokens"].as_array_mut().unwrap().iter_mut().enumerate() {
        added["id"] = (order.len() + i).into();
    }
}

#[test]
fn tokenizers_that_a_file_cannot_state_are_refused_by_what_they_ask_for() {
    let folder = ScratchFolder::new("convert-tokenizers");
    let usual = || {
        let mut tokenizer = byte_level(&json!({"type": "ByteLevel", "add_prefix_space": false}), false);
        shrink(&mut tokenizer);
        tokenizer
    };
    let changed = |pointer: &str, value: Value| {
        let mut tokenizer = usual();
        *tokenizer.pointer_mut(pointer).unwrap() = value;
        with_tokenizer(&folder, &tokenizer).unwrap_err()
    };
    for (pointer, value, expected) in [
        ("/normalizer", json!({"type": "Lowercase"}), "normalizer: GGUF metadata have no word for"),
        (
            "/pre_tokenizer",
            json!({"type": "ByteLevel", "add_prefix_space": true}),
            "a splitting that is not by patterns alone",
        ),
        ("/pre_tokenizer", bytes_behind(r"\p{L}+|\d"), r"have no name there"),
        ("/model/ignore_merges", json!(true), "rules of splitting that have no name there"),
        (
            "/post_processor",
            json!({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}},
                {"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [], "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [254], "tokens": ["<|end|>"]}}}),
            "tokens in front of a text that are not BOS",
        ),
    ] {
        let error = changed(pointer, value);
        assert!(error.is_unsupported() && error.to_string().contains(expected), "{pointer}: {error}");
        assert!(error.to_string().contains("tokenizer.json"), "{error}");
    }
    let words = json!({"model": {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"}});
    let error = with_tokenizer(&folder, &words).unwrap_err().to_string();
    assert!(error.contains("a model other than BPE"), "{error}");
    // As many tokens as there are bytes and rules, which is more than the model has rows.
    let large = byte_level(&json!({"type": "ByteLevel", "add_prefix_space": false}), false);
    let error = with_tokenizer(&folder, &large).unwrap_err().to_string();
    assert!(error.contains("has ids up to 264, and the model 256 rows"), "{error}");
}

#[test]
fn what_a_file_cannot_say_of_a_tokenizer_is_noted() {
    let folder = ScratchFolder::new("convert-notes");
    let mut json = byte_level(&json!({"type": "ByteLevel", "add_prefix_space": false}), false);
    shrink(&mut json);
    json["normalizer"] = json!({"type": "NFC"});
    json["added_tokens"][0]["rstrip"] = true.into();
    let model = with_config(&folder, "qwen2", &json!({"eos_token_id": [254, 7]}));
    let tokenizer = Tokenizer::from_json(json.to_string().as_bytes(), "tokenizer.json").unwrap();
    let checkpoint = Checkpoint::open(&model).unwrap();
    let texts = ModelTexts { tokenizer: &tokenizer, templates: &Templates::default() };
    let plan = ConversionPlan::new(&checkpoint, Some(texts), &ConvertOptions::default()).unwrap();
    for expected in ["NFC", "swallow white space", "[7] end texts"] {
        assert!(plan.notes.iter().any(|note| note.contains(expected)), "{expected}: {:?}", plan.notes);
    }
    let file = folder.0.join("out.gguf");
    plan.write(&file, false, &mut |_| {}).unwrap();
    let gguf = Gguf::parse(&std::fs::read(&file).unwrap(), "out.gguf").unwrap();
    let again = Tokenizer::from_gguf(GgufVocab::from_header(&gguf).unwrap()).unwrap();
    assert_eq!((again.eos(), again.token_id("<tool>")), (Some(254), tokenizer.token_id("<tool>")));
}
