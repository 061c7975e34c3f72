//! Golden ids by the reference library, and the prompts of the golden models: of the small model as a GGUF and as a
//! `tokenizer.json`, and of real ones where they are.

use crate::tokenizer_support::{column, from_gguf, from_json};
use serde_json::Value;
use yirage_model::tokenizer::{EncodeOptions, Tokenizer};
use yirage_testkit::json::{self, ids};
use yirage_testkit::{absent, bedtime};

/// The small model's tokenizer, by both of its files.
fn ours() -> [(&'static str, Tokenizer); 2] {
    let json = bedtime::safetensors_with_tokenizer().join("tokenizer.json");
    [("gguf", from_gguf(&bedtime::f32())), ("json", from_json(&json))]
}

/// Encodes a text exactly, and decodes it to `decoded`.
fn check(name: &str, tokenizer: &Tokenizer, parse_special: bool, text: &str, wanted: &[u32], decoded: &str) {
    let found = tokenizer.encode(text, EncodeOptions { add_special: false, parse_special }).unwrap();
    assert_eq!(found, wanted, "{name}: {text:?}\n{}", pieces(tokenizer, &found, wanted));
    assert_eq!(tokenizer.decode(&found, false), decoded, "{name}");
}

fn pieces(tokenizer: &Tokenizer, found: &[u32], wanted: &[u32]) -> String {
    let list = |ids: &[u32]| ids.iter().map(|&id| tokenizer.piece(id).unwrap_or("?").to_owned()).collect::<Vec<_>>();
    format!("found  {:?}\nwanted {:?}", list(found), list(wanted))
}

/// Prompts with what stands around them, their answers, and the passage of a golden file.
fn check_prompts(name: &str, tokenizer: &Tokenizer, golden: &Value) {
    for case in golden["cases"].as_array().unwrap() {
        let text = case["prompt"].as_str().or(case["rendered"].as_str()).unwrap_or_default();
        if case["kind"] != "completion" {
            continue;
        }
        let found = tokenizer.encode(text, tokenizer.default_options()).unwrap();
        assert_eq!(found, ids(&case["prompt_ids"]), "{name}: {text:?}");
        let answer = ids(&case["greedy_ids"]);
        assert_eq!(tokenizer.decode_continuation(&answer, true), case["greedy_text"].as_str().unwrap(), "{name}");
    }
    let passage = &golden["nll"];
    let found = tokenizer.encode(passage["text"].as_str().unwrap(), tokenizer.default_options()).unwrap();
    assert_eq!(found, ids(&passage["ids"]), "{name}: passage");
}

#[test]
fn texts_encode_and_decode_exactly() {
    let golden = bedtime::golden();
    for (name, tokenizer) in ours() {
        for case in golden["texts"].as_array().unwrap() {
            // It writes spaces as U+2581, so it cannot tell one that was in the text.
            let text = case["text"].as_str().unwrap();
            check(name, &tokenizer, false, text, &ids(&case["ids"]), &text.replace('\u{2581}', " "));
        }
        check_prompts(name, &tokenizer, &golden);
    }
}

#[test]
#[ignore = "needs ../shared/golden, and tokenizers and models in YIRAGE_MODELS"]
fn real_tokenizers_encode_and_decode_exactly() {
    let golden = json::read(&absent::shared("golden/tokenizers.json"));
    for name in [
        "llama3",
        "qwen2_5",
        "gemma3",
        "gptoss",
        "gguf:gemma-3-270m-q4_k_m",
        "gguf:SmolLM2-135M-Instruct.Q4_1",
        "gguf:stories260K",
        "stories260K",
    ] {
        let tokenizer = column(name);
        let parse_special = !name.starts_with("gguf:") && name != "stories260K";
        for case in golden["cases"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            check(name, &tokenizer, parse_special, text, &ids(&case["ids"][name]), text);
        }
    }
}

#[test]
#[ignore = "needs ../shared/golden, and gemma-3-270m and smollm2-135m in YIRAGE_MODELS"]
fn prompts_of_real_models_carry_bos_as_their_files_say() {
    let models = [
        ("gemma", "gguf:gemma-3-270m-q4_k_m"),
        ("smollm2", "gguf:SmolLM2-135M-Instruct.Q4_1"),
        ("stories", "gguf:stories260K"),
    ];
    for (file, name) in models {
        check_prompts(file, &column(name), &json::read(&absent::shared(&format!("golden/{file}.json"))));
    }
}
