//! What the files of GLM-4 ask of whoever generates: three tokens that end a text, two in front of every prompt.

use crate::support::{joined, path, yirage};
use serde_json::{Map, Value, json};
use std::path::Path;
use tempfile::TempDir;
use yirage_testkit::tiny;

const SPECIAL: [(&str, u32); 6] = [
    ("[gMASK]", 200),
    ("<sop>", 201),
    ("<|user|>", 202),
    ("<|assistant|>", 203),
    ("<|observation|>", 204),
    ("<|endoftext|>", 205),
];
const TEMPLATE: &str = "[gMASK]<sop>{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{% endfor %}<|assistant|>";

/// A copy of the tiny model with other files beside it.
fn beside(files: &[(&str, Value)]) -> TempDir {
    let (source, folder) = (tiny::model("glm4"), tempfile::tempdir().unwrap());
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(source.join(file), folder.path().join(file)).unwrap();
    }
    for (name, value) in files {
        std::fs::write(folder.path().join(name), value.to_string()).unwrap();
    }
    folder
}

fn run(model: &Path, more: &[&str]) -> Value {
    let model = path(model);
    yirage(&[&["run", "--model", &model, "--temperature", "0", "--json"], more].concat()).json()
}

#[test]
fn every_end_of_the_settings_ends_a_text() {
    let golden = tiny::golden("glm4");
    let case = &golden["cases"][1];
    let (ids, greedy) = (joined(&case["ids"]), case["greedy16"].as_array().unwrap());
    let first = |token: &Value| greedy.iter().position(|t| t == token).unwrap();
    let (early, late) = (&greedy[3], &greedy[9]);
    for (ends, last) in [(json!([2, late, early]), first(early)), (json!([late, 2]), first(late))] {
        let folder = beside(&[("generation_config.json", json!({ "eos_token_id": ends }))]);
        let exact = ["--max-tokens", "16", "--kv-type", "f32", "--precision", "exact"];
        let found = run(folder.path(), &[&["--prompt-ids", ids.as_str()][..], &exact[..]].concat());
        assert_eq!(found["finish_reason"], "stop", "{ends}");
        assert_eq!(found["tokens"].as_array().unwrap()[..], greedy[..=last], "{ends}");
    }
}

#[test]
fn the_prefix_stands_in_front_once() {
    let letters = (' '..='~').zip(3..).map(|(c, id)| (c.to_string(), Value::from(id)));
    let vocabulary: Map<String, Value> = letters.chain([("\n".to_owned(), 100.into())]).collect();
    let added = SPECIAL.map(|(text, id)| {
        json!({"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true})
    });
    let token = |text: &str| json!({"SpecialToken": {"id": text, "type_id": 0}});
    let ids = |text: &str, id: u32| json!({"id": text, "ids": [id], "tokens": [text]});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": null, "decoder": {"type": "Fuse"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [token("[gMASK]"), token("<sop>"), {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
            "special_tokens": {"[gMASK]": ids("[gMASK]", 200), "<sop>": ids("<sop>", 201)}},
        "model": {"type": "BPE", "unk_token": null, "vocab": vocabulary, "merges": []}
    });
    let config = json!({"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>", "chat_template": TEMPLATE});
    let folder = beside(&[("tokenizer.json", tokenizer), ("tokenizer_config.json", config)]);
    let prompt = |more: &[&str]| {
        let found = run(folder.path(), &[&["--prompt", "Hi", "--max-tokens", "1"], more].concat());
        found["prompt_tokens"].clone()
    };
    let (h, i) = (u32::from(b'H' - b' ') + 3, u32::from(b'i' - b' ') + 3);
    assert_eq!(prompt(&[]), json!([200, 201, 202, 100, h, i, 203]));
    assert_eq!(prompt(&["--raw"]), json!([200, 201, h, i]));
}
