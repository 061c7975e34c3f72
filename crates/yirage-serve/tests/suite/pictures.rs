//! Pictures in every protocol: the answer of transformers, and refusals of what is not read.

use crate::support::{Answered, engine_options, options, post, seeing, serve_with, story};
use serde_json::{Value, json};
use yirage_model::Checkpoint;
use yirage_session::TextProcessor;
use yirage_testkit::json::ids;
use yirage_testkit::vision;

/// The case of both pictures, and their files in base64.
fn case() -> (Value, [String; 2]) {
    let golden = vision::golden("llava");
    let file = |name: &str| golden["pictures"][name].as_str().unwrap().to_owned();
    (golden["cases"][1].clone(), [file("first"), file("second")])
}

/// What the answer to it says, of tokens that are few bytes of text.
fn wanted(case: &Value) -> String {
    let texts = TextProcessor::load(&Checkpoint::open(vision::model("llava")).unwrap()).unwrap().unwrap();
    let mut all = texts.tokenizer.continuation(true);
    let text: String = ids(&case["greedy"]).into_iter().map(|id| all.push(id)).collect();
    text + &all.finish()
}

#[test]
fn pictures_are_read_in_every_protocol() {
    let (case, [first, second]) = case();
    let (wanted, text) = (wanted(&case), case["text"].as_str().unwrap());
    let server = serve_with(options(), vec![seeing()]);
    let address = server.address();
    let url = |data: &str| format!("data:image/png;base64,{data}");
    let of = |path: &str, body: Value| -> Value {
        let answered: Answered = post(address, path, &body);
        assert_eq!(answered.status, 200, "{path}: {}", answered.text());
        answered.json()
    };
    let parts = |kind: &str, text_kind: &str, picture: &dyn Fn(&str) -> Value| {
        json!([{"type": kind, "image_url": picture(&first)}, {"type": kind, "image_url": picture(&second), "detail": "auto"},
            {"type": text_kind, "text": text}])
    };
    let count = case["ids"].as_array().unwrap().len();

    let content = parts("image_url", "text", &|data| json!({"url": url(data), "detail": "high"}));
    let chat = json!({"model": "llava", "max_tokens": 12, "temperature": 0,
        "messages": [{"role": "user", "content": content}]});
    let said = of("/v1/chat/completions", chat);
    assert_eq!(said["choices"][0]["message"]["content"], wanted);
    assert_eq!(said["usage"]["prompt_tokens"], count);

    let content = parts("input_image", "input_text", &|data| url(data).into());
    let responses = json!({"model": "llava", "max_output_tokens": 12, "temperature": 0,
        "input": [{"role": "user", "content": content}]});
    let said = of("/v1/responses", responses);
    assert_eq!(said["output"][0]["content"][0]["text"], wanted);

    let source = |data: &str| json!({"type": "base64", "media_type": "image/png", "data": data});
    let content = json!([{"type": "image", "source": source(&first)}, {"type": "image", "source": source(&second)},
        {"type": "text", "text": text}]);
    let messages = json!({"model": "llava", "max_tokens": 12, "temperature": 0,
        "messages": [{"role": "user", "content": content}]});
    let said = of("/v1/messages", messages);
    assert_eq!(said["content"][0]["text"], wanted);

    let chat = json!({"model": "llava", "stream": false, "options": {"num_predict": 12, "temperature": 0},
        "messages": [{"role": "user", "content": text, "images": [first, second]}]});
    let said = of("/api/chat", chat);
    assert_eq!(said["message"]["content"], wanted);
    assert_eq!(said["prompt_eval_count"], count);
}

#[test]
fn pictures_that_are_not_read_are_a_refusal_that_says_so() {
    let (_, [first, _]) = case();
    let server = serve_with(options(), vec![seeing(), story(engine_options())]);
    let refused = |model: &str, url: &str, text: &str| {
        let content = json!([{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}]);
        let body = json!({"model": model, "messages": [{"role": "user", "content": content}]});
        let answered = post(server.address(), "/v1/chat/completions", &body);
        assert_eq!(answered.status, 400, "{}", answered.text());
        answered.json()["error"]["message"].as_str().unwrap().to_owned()
    };
    let data = format!("data:image/png;base64,{first}");
    let words = |found: String, wanted: &str| assert!(found.contains(wanted), "{found}");
    words(refused("story", &data, "a"), "reads no pictures");
    words(refused("llava", "https://example.org/a.png", "a"), "pictures are not fetched");
    words(refused("llava", "data:image/png;base64,%%%", "a"), "no base64");
    words(refused("llava", "data:image/png;base64,R0lGODlh", "a"), "send a PNG, JPEG or WebP file");
    words(refused("llava", &data, "what is <image>?"), "2 places for 1 pictures");
    let body = json!({"model": "llava", "messages": [{"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": data}}]}]});
    let answered = post(server.address(), "/v1/chat/completions", &body);
    assert_eq!(answered.status, 400, "{}", answered.text());
}
