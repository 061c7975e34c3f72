//! Random text against the reference library on the same `tokenizer.json`, and GGUF vocabularies against the
//! `tokenizer.json` of the same model.
#![allow(clippy::print_stderr)]

use crate::tokenizer_support::{column, from_gguf, from_json};
use std::path::Path;
use yirage_model::tokenizer::{EncodeOptions, Tokenizer};
use yirage_testkit::rng::Rng;
use yirage_testkit::{absent, bedtime, encoders};

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: true };

/// Texts from a seed, so that failures repeat.
struct Dice(Rng);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(Rng::new(seed))
    }

    /// Words, code, white space of all kinds, scripts, emoji, combining marks, control characters.
    fn text(&mut self) -> String {
        const PARTS: [&str; 40] = [
            "hello",
            " the",
            "World",
            "'s",
            "'LL",
            "'re",
            "don't",
            "HTTPServer",
            "fooBar",
            "x_1",
            "123",
            "4567890",
            "3.14",
            " ",
            "  ",
            "   ",
            "\n",
            "\r\n",
            "\n\n",
            "\t",
            "\u{a0}",
            "\u{3000}",
            "{",
            "});",
            "//",
            "#[a]",
            "<|im_start|>",
            "<bos>",
            "日本語",
            "今天",
            "안녕",
            "мир",
            "مرحبا",
            "नमस्ते",
            "🙂",
            "👩‍👩‍👧",
            "e\u{301}",
            "\u{200d}",
            "½²",
            "ǅſ",
        ];
        let mut text = String::new();
        for _ in 0..1 + self.0.index(14) {
            match self.0.index(5) {
                0 => text.extend(char::from_u32(self.0.index(0x3000) as u32)),
                1 => text.extend(char::from_u32(self.0.index(0x2_0000) as u32)),
                2 => text.push((b' ' + self.0.index(95) as u8) as char),
                _ => text.push_str(self.0.choose::<&str>(&PARTS)),
            }
        }
        text
    }
}

/// Random texts as the reference library encodes and decodes them.
fn check_oracle(name: &str, path: &Path) {
    let (ours, mut oracle) = (from_json(path), tokenizers::Tokenizer::from_file(path).unwrap());
    // Some files ask for rows of one length, which is for batches that need it.
    oracle.with_padding(None).with_truncation(None).unwrap();
    let mut dice = Dice::new(42);
    let mut wrong = Vec::new();
    for _ in 0..3000 {
        let text = dice.text();
        let wanted = oracle.encode_fast(text.as_str(), false).unwrap().get_ids().to_vec();
        let found = ours.encode(&text, PLAIN).unwrap();
        if found != wanted {
            wrong.push(format!("{text:?}: {found:?} not {wanted:?}"));
        } else {
            assert_eq!(ours.decode(&found, false), oracle.decode(&wanted, false).unwrap(), "{name}: {text:?}");
        }
    }
    assert!(wrong.is_empty(), "{name}: {} of 3000: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
}

/// Random texts by the vocabulary of a GGUF and by the `tokenizer.json` of the same model.
fn check_both(name: &str, gguf: &Tokenizer, json: &Tokenizer, options: EncodeOptions) {
    let mut dice = Dice::new(7);
    let mut wrong = Vec::new();
    for _ in 0..3000 {
        let text = composed(json, &dice.text());
        let (found, wanted) = (gguf.encode(&text, options).unwrap(), json.encode(&text, options).unwrap());
        if found != wanted {
            wrong.push(format!("{text:?}: {found:?} not {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{name}: {} of 3000: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
}

#[test]
fn random_text_encodes_and_decodes_as_the_reference_library_does() {
    check_oracle("bedtime", &bedtime::safetensors_with_tokenizer().join("tokenizer.json"));
    check_oracle("word pieces", &encoders::model("embed").join("tokenizer.json"));
}

#[test]
fn gguf_and_json_of_the_small_model_agree() {
    let json = from_json(&bedtime::safetensors_with_tokenizer().join("tokenizer.json"));
    let text = EncodeOptions { add_special: false, parse_special: false };
    check_both("bedtime", &from_gguf(&bedtime::f32()), &json, text);
}

#[test]
#[ignore = "needs four tokenizers in YIRAGE_MODELS"]
fn real_tokenizers_do_as_the_reference_library_does() {
    for name in ["llama3", "qwen2_5", "gemma3", "gptoss"] {
        check_oracle(name, &absent::model(&format!("tokenizers/{name}/tokenizer.json")));
    }
}

#[test]
#[ignore = "needs all-MiniLM-L6-v2 in YIRAGE_MODELS"]
fn a_real_encoder_cuts_text_as_the_reference_library_does() {
    check_oracle("MiniLM", &absent::model("all-MiniLM-L6-v2/tokenizer.json"));
}

#[test]
#[ignore = "needs two models and their tokenizers in YIRAGE_MODELS"]
fn gguf_and_json_of_real_models_agree() {
    for (file, name) in [("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen2_5"), ("gemma-3-270m-q4_k_m.gguf", "gemma3")]
    {
        check_both(name, &from_gguf(&absent::model(file)), &column(name), PLAIN);
    }
}

/// The text after the normalisation that only `tokenizer.json` asks for.
fn composed(json: &Tokenizer, text: &str) -> String {
    json.decode(&json.encode(text, PLAIN).unwrap(), false)
}

/// Prints how long loading takes; run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, not a test; needs tokenizers and a model in YIRAGE_MODELS"]
fn loading_time() {
    for name in ["gemma3", "gptoss", "qwen2_5", "gguf:gemma-3-270m-q4_k_m"] {
        let before = peak();
        let start = std::time::Instant::now();
        let size = column(name).vocab_size();
        eprintln!("{name}: {:?}, peak {before} -> {}, {size}", start.elapsed(), peak());
    }
}

fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("?").trim().to_owned()
}
