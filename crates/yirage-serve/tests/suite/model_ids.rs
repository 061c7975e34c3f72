//! Model ids are names and no paths: whatever a request calls its model, no file is looked for, and no answer has the place of
//! one.

use crate::support::{self, Answered, engine_options, get, options, post, serve_with, story};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use yirage_serve::{ModelEntry, Served};
use yirage_testkit::bedtime;

/// What looks like the place of a file, some of them of one that is a model.
fn places() -> Vec<String> {
    let file = bedtime::f32().canonicalize().unwrap();
    let folder = file.parent().unwrap().to_string_lossy().into_owned();
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let file = file.to_string_lossy().into_owned();
    vec![
        format!("file://{file}"),
        format!("{folder}/./{name}"),
        format!("{folder}/../{name}"),
        file.clone(),
        format!("{file}/"),
        format!("{file}:latest"),
        folder,
        name,
        "/etc/passwd".to_owned(),
        "../../../../etc/passwd".to_owned(),
        "..".to_owned(),
        ".".to_owned(),
        "./story".to_owned(),
        "story/".to_owned(),
        "/story".to_owned(),
        "org/../story".to_owned(),
        "org//story".to_owned(),
        "C:\\models\\story.gguf".to_owned(),
        "\\\\host\\share\\story".to_owned(),
        "~/.ssh/id_rsa".to_owned(),
        "%2e%2e%2fstory".to_owned(),
        "https://example.com/story.gguf".to_owned(),
        "story\u{0}".to_owned(),
        "STORY".to_owned(),
    ]
}

/// Two models, and how often one was opened.
fn counted() -> (Vec<ModelEntry>, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let counts = opened.clone();
    let open = move || {
        counts.fetch_add(1, Ordering::Relaxed);
        Ok(Served::Generator(Box::new(support::generator(&engine_options()))))
    };
    let other = ModelEntry::new(vec!["other".to_owned()], 1 << 20, Box::new(open));
    (vec![story(engine_options()), other], opened)
}

/// A request of every path that names a model.
fn asked(address: SocketAddr, model: &str) -> Vec<(&'static str, Answered)> {
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let bodies = [
        ("/v1/chat/completions", json!({"messages": messages, "max_tokens": 1})),
        ("/v1/completions", json!({"prompt": "a", "max_tokens": 1})),
        ("/v1/responses", json!({"input": "a", "max_output_tokens": 1})),
        ("/v1/responses/input_tokens", json!({"input": "a"})),
        ("/v1/messages", json!({"messages": messages, "max_tokens": 1})),
        ("/v1/messages/count_tokens", json!({"messages": messages})),
        ("/v1/embeddings", json!({"input": "a"})),
        ("/completion", json!({"prompt": "a", "n_predict": 1})),
        ("/tokenize", json!({"content": "a"})),
        ("/apply-template", json!({"messages": messages})),
        ("/api/chat", json!({"messages": messages, "stream": false})),
        ("/api/generate", json!({"prompt": "a", "stream": false})),
        ("/api/embed", json!({"input": "a"})),
        ("/api/show", json!({})),
        ("/api/pull", json!({"stream": false})),
        ("/models/load", json!({})),
        ("/models/unload", json!({})),
        ("/v1/load_lora_adapter", json!({"lora_name": "x", "lora_path": "x"})),
    ];
    let named = |(path, mut body): (&'static str, Value)| {
        body["model"] = model.into();
        (path, post(address, path, &body))
    };
    bodies.into_iter().map(named).collect()
}

#[test]
fn a_name_that_is_a_place_opens_nothing() {
    let (models, opened) = counted();
    let server = serve_with(options(), models);
    for place in places() {
        for (path, answered) in asked(server.address(), &place) {
            assert_eq!(answered.status, 404, "{path} {place:?}: {}", answered.text());
        }
    }
    let listed = get(server.address(), "/v1/models").json()["data"].clone();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["story", "org/story", "other"]);
    // In the path of a request a name may have slashes, and is a name all the same.
    assert_eq!(get(server.address(), "/v1/models/org/story").status, 200);
    for place in ["../story", "org/../story", "//etc/passwd", "%2fetc%2fpasswd", "org%2f..%2fstory", "."] {
        assert_eq!(get(server.address(), &format!("/v1/models/{place}")).status, 404, "{place}");
    }
    for query in ["/etc/passwd", "..%2f..%2fetc%2fpasswd", "file:///etc/passwd"] {
        for path in ["/props", "/slots", "/lora-adapters"] {
            assert_eq!(get(server.address(), &format!("{path}?model={query}")).status, 404, "{path} {query}");
        }
    }
    assert_eq!(opened.load(Ordering::Relaxed), 0, "a model that nobody named was opened");
}

/// Where one model answers to every name, what it says of itself is its own name.
#[test]
fn a_name_that_is_a_place_is_no_name_of_an_answer() {
    let server = serve_with(options(), vec![story(engine_options())]);
    let listed = ["/api/show", "/api/pull", "/models/load", "/models/unload", "/v1/load_lora_adapter"];
    for place in places() {
        for (path, answered) in asked(server.address(), &place) {
            if listed.contains(&path) {
                assert_eq!(answered.status, 404, "{path} {place:?}");
                continue;
            }
            // A model that gives no vectors says so; all others answer.
            let status = if path.contains("/embed") { answered.status } else { 200 };
            assert_eq!(answered.status, status, "{path} {place:?}: {}", answered.text());
            assert!(!answered.text().contains(&place) || place == "." || place == "..", "{path} {place:?}");
            if let Some(said) = answered.json().get("model") {
                assert_eq!(said, "story", "{path} {place:?}");
            }
        }
    }
}
