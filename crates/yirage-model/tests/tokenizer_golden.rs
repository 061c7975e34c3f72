//! Golden ids of four `tokenizer.json` files and three GGUF vocabularies, by the reference library and by a GGUF
//! runtime, and the prompts of the golden models.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod tokenizer_support;

use serde_json::Value;
use tokenizer_support::{column, json, shared};
use yirage_model::tokenizer::{EncodeOptions, Tokenizer};

const COLUMNS: [&str; 8] = [
    "llama3",
    "qwen2_5",
    "gemma3",
    "gptoss",
    "gguf:gemma-3-270m-q4_k_m",
    "gguf:SmolLM2-135M-Instruct.Q4_1",
    "gguf:stories260K",
    "stories260K",
];

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

#[test]
fn every_golden_text_encodes_and_decodes_exactly() {
    let Some(path) = shared("golden/tokenizers.json") else { return };
    let golden = json(&path);
    for name in COLUMNS {
        let Some(tokenizer) = column(name) else { continue };
        let options =
            EncodeOptions { add_special: false, parse_special: !name.starts_with("gguf:") && name != "stories260K" };
        for case in golden["cases"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap();
            let wanted = ids(&case["ids"][name]);
            let found = tokenizer.encode(text, options).unwrap();
            assert_eq!(found, wanted, "{name}: {text:?}\n{}", pieces(&tokenizer, &found, &wanted));
            assert_eq!(tokenizer.decode(&found, false), text, "{name}");
        }
    }
}

fn pieces(tokenizer: &Tokenizer, found: &[u32], wanted: &[u32]) -> String {
    let list = |ids: &[u32]| ids.iter().map(|&id| tokenizer.piece(id).unwrap_or("?").to_owned()).collect::<Vec<_>>();
    format!("found  {:?}\nwanted {:?}", list(found), list(wanted))
}

#[test]
fn prompts_of_the_golden_models_carry_bos_as_their_files_say() {
    let models = [
        ("gemma", "gguf:gemma-3-270m-q4_k_m"),
        ("smollm2", "gguf:SmolLM2-135M-Instruct.Q4_1"),
        ("stories", "gguf:stories260K"),
    ];
    for (file, name) in models {
        let (Some(path), Some(tokenizer)) = (shared(&format!("golden/{file}.json")), column(name)) else { continue };
        let golden = json(&path);
        for case in golden["cases"].as_array().unwrap() {
            let text = case["prompt"].as_str().or(case["rendered"].as_str()).unwrap_or_default();
            if case["kind"] != "completion" {
                continue;
            }
            let found = tokenizer.encode(text, tokenizer.default_options()).unwrap();
            assert_eq!(found, ids(&case["prompt_ids"]), "{file}: {text:?}");
            let answer = ids(&case["greedy_ids"]);
            assert_eq!(tokenizer.decode_continuation(&answer, true), case["greedy_text"].as_str().unwrap(), "{file}");
        }
        let passage = &golden["nll"];
        let found = tokenizer.encode(passage["text"].as_str().unwrap(), tokenizer.default_options()).unwrap();
        assert_eq!(found, ids(&passage["ids"]), "{file}: passage");
    }
}
