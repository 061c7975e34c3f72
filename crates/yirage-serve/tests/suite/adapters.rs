//! Adapters over HTTP: by number, by the model's name, loaded and unloaded.

use crate::support::{engine_options, generator, get, ok, options, post, serve_with};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use yirage_engine::{EngineAdapter, EngineOptions};
use yirage_model::LoraAdapter;
use yirage_serve::{AdapterFiles, ModelEntry, Served};
use yirage_testkit::{adapters, bedtime, fixtures};

/// A folder with two adapters for the model.
fn folder() -> PathBuf {
    let one = adapters::gguf("llama", &[("blk.0.attn_q.weight", 64, 64), ("blk.1.ffn_gate.weight", 160, 64)]);
    let other = adapters::gguf("llama", &[("blk.0.attn_v.weight", 32, 64), ("blk.0.ffn_up.weight", 160, 64)]);
    let narrow = adapters::gguf("llama", &[("blk.2.attn_output.weight", 64, 32)]);
    fixtures::folder("lora-serve", &[("one.gguf", one), ("other.gguf", other), ("narrow.gguf", narrow)])
}

fn named(name: &str, file: &str, scale: f32) -> EngineAdapter {
    EngineAdapter { name: name.into(), adapter: LoraAdapter::open(folder().join(file)).unwrap(), scale }
}

fn story(adapters: Vec<EngineAdapter>, files: Option<&Path>) -> ModelEntry {
    let names = adapters.iter().map(|adapter| adapter.name.clone()).collect();
    let options = EngineOptions { adapters, ..engine_options() };
    let files = files.map(|folder| AdapterFiles { folder: folder.to_owned(), model: bedtime::f32() });
    let open = move || {
        let generator = generator(&options);
        Ok(Served::Generator(Box::new(match &files {
            Some(files) => generator.with_adapter_files(files.clone()),
            None => generator,
        })))
    };
    ModelEntry::new(vec!["story".to_owned()], 1 << 20, Box::new(open)).with_adapters(names)
}

/// The tokens of an answer, with further fields.
fn tokens(address: SocketAddr, more: Value) -> Value {
    let mut body = json!({"prompt": "Once upon a time", "n_predict": 24, "temperature": 0, "return_tokens": true,
        "ignore_eos": true});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ok(address, "/completion", &body)["tokens"].clone()
}

#[test]
fn adapters_have_numbers_and_scales_that_requests_and_the_server_choose() {
    let server = serve_with(
        options(),
        vec![story(vec![named("one", "one.gguf", 1.0), named("other", "other.gguf", 0.0)], None)],
    );
    let address = server.address();
    let listed = json!([{"id": 0, "path": "one", "scale": 1.0}, {"id": 1, "path": "other", "scale": 0.0}]);
    assert_eq!(get(address, "/lora-adapters").json(), listed);
    let with = |lora: Value| tokens(address, json!({"lora": lora}));
    let (usual, plain, one) = (tokens(address, json!({})), with(json!([])), with(json!([{"id": 0, "scale": 1.0}])));
    assert_eq!(usual, one, "what the server has set");
    assert_ne!(plain, one);
    let other = with(json!([{"id": 1, "scale": 1.0}]));
    assert!(other != plain && other != one, "{other}");
    assert_eq!(with(json!([{"id": 0, "scale": 0}])), plain);
    // The same by the name of the model, in every protocol's way.
    assert_eq!(tokens(address, json!({"model": "other"})), other);
    let chat = |model: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "Tell me."}], "temperature": 0,
            "max_tokens": 24});
        ok(address, "/v1/chat/completions", &body)
    };
    let (by_adapter, by_model) = (chat("other"), chat("story"));
    assert_eq!((&by_adapter["model"], &by_model["model"]), (&json!("other"), &json!("story")));
    assert_ne!(by_adapter["choices"], by_model["choices"]);
    let models = get(address, "/v1/models").json();
    let of = |id: &str| models["data"].as_array().unwrap().iter().find(|of| of["id"] == id).cloned().unwrap();
    assert_eq!((&of("other")["parent"], &of("story")["parent"]), (&json!("story"), &Value::Null));
    // What the server has set is changed for those that say nothing.
    assert_eq!(ok(address, "/lora-adapters", &json!([{"id": 1, "scale": 1.0}])), json!({"success": true}));
    assert_eq!(tokens(address, json!({})), other);
    assert_eq!(get(address, "/lora-adapters").json()[0]["scale"], 0.0);
    for (lora, message) in [
        (json!([{"id": 2, "scale": 1}]), "there is no adapter 2; there are 2"),
        (json!([{"scale": 1}]), "`lora[0].id` is missing"),
        (json!([{"id": 0, "scale": 1}, {"id": 0, "scale": 2}]), "named twice"),
        (json!([3]), "an object"),
    ] {
        let refused = post(address, "/completion", &json!({"prompt": "Once", "lora": lora}));
        assert!(refused.status == 400 && refused.text().contains(message), "{}", refused.text());
    }
    let both = post(address, "/completion", &json!({"prompt": "Once", "model": "one", "lora": []}));
    assert!(both.status == 400 && both.text().contains("names the adapter"), "{}", both.text());
    let refused = post(address, "/lora-adapters", &json!([{"id": 9, "scale": 1}]));
    assert!(refused.status == 400 && refused.text().contains("no adapter 9"), "{}", refused.text());
}

#[test]
fn adapters_are_loaded_and_unloaded_while_the_server_runs() {
    let server = serve_with(options(), vec![story(Vec::new(), Some(&folder()))]);
    let address = server.address();
    let plain = tokens(address, json!({}));
    let load =
        |name: &str, path: &str| post(address, "/v1/load_lora_adapter", &json!({"lora_name": name, "lora_path": path}));
    assert_eq!(load("tuned", "one.gguf").status, 200);
    let tuned = tokens(address, json!({"model": "tuned"}));
    assert_ne!(tuned, plain);
    assert_eq!(tokens(address, json!({})), plain, "who does not name it gets the model");
    assert_eq!(load("second", "other.gguf").status, 200);
    assert_eq!(tokens(address, json!({"model": "tuned"})), tuned);
    for (name, path, message) in [
        ("tuned", "one.gguf", "already"),
        ("third", "../one.gguf", "the server's folder"),
        ("third", "/etc/passwd", "the server's folder"),
        ("third", "nothing.gguf", "the server's folder"),
        ("third", "narrow.gguf", "[64, 32]"),
        ("story", "one.gguf", "the name of a model"),
    ] {
        let refused = load(name, path);
        assert!(refused.status == 400 && refused.text().contains(message), "{}", refused.text());
        assert!(!refused.text().contains(folder().to_str().unwrap()), "{}", refused.text());
    }
    let unload = |name: &str| post(address, "/v1/unload_lora_adapter", &json!({"lora_name": name}));
    assert_eq!(unload("tuned").status, 200);
    assert_eq!(unload("tuned").status, 404);
    assert_eq!(get(address, "/lora-adapters").json(), json!([{"id": 0, "path": "second", "scale": 0.0}]));
    assert_eq!(tokens(address, json!({})), plain);
    let closed = serve_with(options(), vec![story(Vec::new(), None)]);
    for path in ["/v1/load_lora_adapter", "/v1/unload_lora_adapter"] {
        let refused = post(closed.address(), path, &json!({"lora_name": "a", "lora_path": "b"}));
        assert!(refused.status == 400 && refused.text().contains("--lora-path"), "{path}: {}", refused.text());
    }
}
