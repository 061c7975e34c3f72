//! `--lora` and what belongs to it: an adapter changes the answer, merged or beside the model, as much as its scale says.

use crate::serve::Serving;
use crate::support::{bedtime, yirage};
use serde_json::{Value, json};
use std::path::PathBuf;
use yirage_testkit::{adapters, fixtures};

/// A folder with two adapters for the model of the tests.
fn folder() -> PathBuf {
    let one = adapters::gguf("llama", &[("blk.0.attn_q.weight", 64, 64), ("blk.1.ffn_gate.weight", 160, 64)]);
    let other = adapters::gguf("llama", &[("blk.2.attn_output.weight", 64, 64)]);
    let foreign = adapters::gguf("qwen3", &[("blk.2.attn_output.weight", 64, 64)]);
    fixtures::folder("lora-cli", &[("one.gguf", one), ("other.gguf", other), ("foreign.gguf", foreign)])
}

fn file(name: &str) -> String {
    folder().join(name).to_str().unwrap().to_owned()
}

fn answer(more: &[&str]) -> Value {
    let base = ["run", "-m", &bedtime(), "--json", "--temperature", "0", "-n", "40", "--ignore-eos", "-p", "Once"];
    yirage(&[&base[..], more].concat()).json()["tokens"].clone()
}

/// The effect of `--lora`.
pub(crate) fn beside() {
    let (one, other) = (file("one.gguf"), file("other.gguf"));
    let (plain, with) = (answer(&[]), answer(&["--lora", &one]));
    assert_ne!(plain, with);
    let both = answer(&["--lora", &one, "--lora", &other]);
    assert!(both != with && both != plain, "{both}");
    assert_eq!(answer(&["--lora", &format!("{one},{other}")]), both);
    let failed = |path: &str| yirage(&["run", "-m", &bedtime(), "-p", "a", "--lora", path]).ran();
    let foreign = failed(&file("foreign.gguf"));
    assert!(foreign.code == 1 && foreign.err.contains("\"qwen3\""), "{}", foreign.err);
    let missing = failed("/nowhere/a.gguf");
    assert!(missing.code == 1 && missing.err.contains("/nowhere/a.gguf"), "{}", missing.err);
    let model = failed(&bedtime());
    assert!(model.code == 1 && model.err.contains("general.type"), "{}", model.err);
}

/// The effect of `--lora-scaled`.
pub(crate) fn scaled() {
    let one = file("one.gguf");
    let with = |scale: &str| answer(&["--lora-scaled", &format!("{one}:{scale}")]);
    assert_eq!(with("1.0"), answer(&["--lora", &one]));
    assert_eq!(with("0"), answer(&[]));
    assert!(with("-2.5") != with("1"), "the scale has no effect");
    let refused = yirage(&["run", "-m", &bedtime(), "-p", "a", "--lora-scaled", &one]).ran();
    assert!(refused.code == 2 && refused.err.contains("expected FILE:SCALE"), "{}", refused.err);
}

/// The effect of `--lora-merge`: near to the adapter beside the model, and what cannot be changed later is said.
pub(crate) fn merged() {
    let one = file("one.gguf");
    let merged = answer(&["--lora", &one, "--lora-merge", "--precision", "exact"]);
    assert_eq!(merged, answer(&["--lora", &one, "--precision", "exact"]));
    assert_ne!(merged, answer(&["--precision", "exact"]));
    let refused = yirage(&["serve", &bedtime(), "--port", "0", "--lora-modules", &format!("a={one}"), "--lora-merge"]);
    let refused = refused.ran();
    assert!(refused.code == 2 && refused.err.contains("cannot be merged"), "{}", refused.err);
}

fn tokens(server: &Serving, model: &str) -> Value {
    let body = json!({"model": model, "prompt": "Once", "n_predict": 24, "temperature": 0, "return_tokens": true});
    let (status, text) = server.ask("POST", "/completion", "", &body.to_string());
    assert_eq!(status, 200, "{text}");
    serde_json::from_str::<Value>(&text).unwrap()["tokens"].clone()
}

/// The effect of `--lora-modules`.
pub(crate) fn modules() {
    let named = ["--lora-modules", &format!("tuned={}", file("one.gguf"))];
    let server = Serving::new(&named);
    assert_ne!(tokens(&server, "tuned"), tokens(&server, "bedtime-f32"));
    let (_, models) = server.ask("GET", "/v1/models", "", "");
    assert!(models.contains("\"tuned\""), "{models}");
    let refused = yirage(&["serve", &bedtime(), "--port", "0", "--lora-modules", "tuned"]).ran();
    assert!(refused.code == 2 && refused.err.contains("expected NAME=PATH"), "{}", refused.err);
}

/// The effect of `--lora-path`.
pub(crate) fn loaded() {
    let server = Serving::new(&["--lora-path", folder().to_str().unwrap()]);
    let body = r#"{"lora_name": "tuned", "lora_path": "one.gguf"}"#;
    let (status, text) = server.ask("POST", "/v1/load_lora_adapter", "", body);
    assert_eq!(status, 200, "{text}");
    assert_ne!(tokens(&server, "tuned"), tokens(&server, "bedtime-f32"));
    let closed = Serving::new(&[]);
    assert_eq!(closed.ask("POST", "/v1/load_lora_adapter", "", body).0, 400);
}

#[test]
fn a_prompt_cache_is_not_taken_with_another_adapter() {
    let place = tempfile::tempdir().unwrap();
    let kept = place.path().join("bear.kv");
    let long = "Once upon a time there was a little bear who lived in the deep forest with his mother and his father, and \
                every day he went to the river to look at the fish and the birds and the stones.";
    let ran = |more: &[&str]| {
        let base = ["run", "-m", &bedtime(), "--json", "-p", long, "-n", "4", "--prompt-cache", kept.to_str().unwrap()];
        yirage(&[&base[..], more].concat()).ran()
    };
    let one = file("one.gguf");
    assert_eq!(ran(&["--lora", &one]).code, 0);
    let again: Value = serde_json::from_str(&ran(&["--lora", &one]).out).unwrap();
    assert!(again["cached_tokens"].as_u64().unwrap() >= 32, "{again}");
    for other in [&[][..], &["--lora-scaled", &format!("{one}:0.5")], &["--lora", &one, "--lora-merge"]] {
        let refused = ran(other);
        assert!(
            refused.code == 1 && refused.err.contains("adapter") || refused.err.contains("the model"),
            "{}",
            refused.err
        );
    }
}
