//! OpenAI's endpoints: what they answer, whole and in parts.

use crate::support::{self, get, ok, post, serve};
use serde_json::{Value, json};
use yirage_testkit::bedtime;
use yirage_testkit::json::ids;

/// A prompt of the golden file, with what transformers continues it with, greedily.
fn golden() -> (Vec<u32>, Vec<u32>) {
    let case = bedtime::golden()["cases"][0].clone();
    (ids(&case["prompt_ids"]), ids(&case["greedy_ids"]))
}

#[test]
fn completions_are_those_of_an_independent_implementation() {
    let server = serve();
    let (prompt, wanted) = golden();
    let body =
        json!({"model": "story", "prompt": prompt, "max_tokens": 12, "temperature": 0, "return_token_ids": true});
    let answer = ok(server.address(), "/v1/completions", &body);
    assert_eq!(ids(&answer["choices"][0]["token_ids"]), wanted[..12], "{answer}");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["prompt_tokens"], prompt.len());
    assert_eq!(answer["usage"]["completion_tokens"], 12);
    assert_eq!(answer["object"], "text_completion");
    // The unprefixed path is the same.
    assert_eq!(ok(server.address(), "/completions", &body)["choices"], answer["choices"]);
}

fn joined(events: &[Value], of: impl Fn(&Value) -> Option<String>) -> String {
    events.iter().filter_map(of).collect()
}

#[test]
fn streams_say_what_whole_answers_say() {
    let server = serve();
    for seed in 0..3 {
        let mut body = json!({
            "model": "story", "prompt": ["Once upon a time", "In the deep forest"], "max_tokens": 20, "n": 2, "seed": seed,
            "logprobs": 2, "return_token_ids": true,
        });
        let whole = ok(server.address(), "/v1/completions", &body);
        body["stream"] = true.into();
        body["stream_options"] = json!({"include_usage": true});
        let events = post(server.address(), "/v1/completions", &body).events();
        let (last, parts) = events.split_last().unwrap();
        assert_eq!((&last["choices"], &last["usage"]), (&json!([]), &whole["usage"]));
        assert!(parts.iter().all(|part| part["usage"].is_null()));
        for choice in whole["choices"].as_array().unwrap() {
            let mine: Vec<Value> =
                parts.iter().map(|p| p["choices"][0].clone()).filter(|c| c["index"] == choice["index"]).collect();
            assert_eq!(joined(&mine, |c| c["text"].as_str().map(str::to_owned)), choice["text"].as_str().unwrap());
            let of =
                |key: &str| mine.iter().flat_map(|c| c["logprobs"][key].as_array().unwrap().clone()).collect::<Value>();
            for key in ["tokens", "token_logprobs", "text_offset", "top_logprobs"] {
                assert_eq!(of(key), choice["logprobs"][key], "{key}");
            }
            assert_eq!(mine.last().unwrap()["finish_reason"], choice["finish_reason"]);
        }
        let texts: Vec<&str> =
            whole["choices"].as_array().unwrap().iter().map(|c| c["text"].as_str().unwrap()).collect();
        assert_eq!(texts.len(), 4);
        assert_ne!(texts[0], texts[1], "choices of one seed differ");
    }
}

#[test]
fn conversations() {
    let server = serve();
    let mut body = json!({
        "model": "org/story", "max_completion_tokens": 24, "seed": 3, "logprobs": true, "top_logprobs": 2,
        "messages": [{"role": "system", "content": "Tell stories."}, {"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    });
    let whole = ok(server.address(), "/v1/chat/completions", &body);
    let choice = &whole["choices"][0];
    assert_eq!((&whole["object"], &choice["message"]["role"]), (&json!("chat.completion"), &json!("assistant")));
    assert!(choice["message"]["content"].as_str().is_some_and(|text| !text.is_empty()), "{whole}");
    let logprobs = choice["logprobs"]["content"].as_array().unwrap();
    assert_eq!(logprobs[0]["top_logprobs"].as_array().unwrap().len(), 2);
    assert!(logprobs[0]["logprob"].as_f64().unwrap() <= 0.0 && logprobs[0]["bytes"].is_array());
    body["stream"] = true.into();
    let events = post(server.address(), "/v1/chat/completions", &body).events();
    assert_eq!(events[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    let text = joined(&events[1..], |e| e["choices"][0]["delta"]["content"].as_str().map(str::to_owned));
    assert_eq!(text, choice["message"]["content"].as_str().unwrap());
    let parts: Vec<Value> =
        events.iter().flat_map(|e| e["choices"][0]["logprobs"]["content"].as_array().cloned()).flatten().collect();
    assert_eq!(&parts, logprobs);
    let last = &events.last().unwrap()["choices"][0];
    assert_eq!((&last["finish_reason"], &last["delta"]), (&choice["finish_reason"], &json!({})));
    assert!(events.iter().all(|e| e["id"] == events[0]["id"] && e["object"] == "chat.completion.chunk"));
}

#[test]
fn stops_are_no_part_of_the_text_and_are_named() {
    let server = serve();
    let body = |stop: Value| json!({"model": "story", "prompt": "Once upon a time", "max_tokens": 40, "temperature": 0, "stop": stop});
    let whole = ok(server.address(), "/v1/completions", &body(Value::Null));
    let text = whole["choices"][0]["text"].as_str().unwrap();
    let stop = &text[10..14];
    let cut = ok(server.address(), "/v1/completions", &body(json!(["never there", stop])));
    let choice = &cut["choices"][0];
    assert_eq!(choice["text"].as_str().unwrap(), &text[..text.find(stop).unwrap()]);
    assert_eq!((&choice["finish_reason"], &choice["stop_reason"]), (&json!("stop"), &json!(stop)));
}

#[test]
fn every_field_of_sampling_changes_something() {
    let server = serve();
    let base = json!({"model": "story", "prompt": "Once upon a time", "max_tokens": 24, "seed": 5});
    let text = |more: Value| {
        let mut body = base.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ok(server.address(), "/v1/completions", &body)["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let usual = text(json!({}));
    assert_eq!(text(json!({})), usual, "a seed says everything");
    let greedy = text(json!({"temperature": 0}));
    for same in [json!({"top_k": 1}), json!({"top_p": 0.000001}), json!({"min_p": 1})] {
        assert_eq!(text(same.clone()), greedy, "{same}");
    }
    for other in [
        json!({"seed": 6}),
        json!({"temperature": 5}),
        json!({"presence_penalty": 2}),
        json!({"frequency_penalty": 2}),
        json!({"repetition_penalty": 3}),
        json!({"logit_bias": {"266": 100}}),
        json!({"allowed_token_ids": [266, 346, 341]}),
        json!({"stop_token_ids": (3..512).collect::<Vec<u32>>()}),
    ] {
        assert_ne!(text(other.clone()), usual, "{other}");
    }
    let ended = ok(
        server.address(),
        "/v1/completions",
        &json!({
            "model": "story", "prompt": "Once", "max_tokens": 9, "stop_token_ids": [266], "logit_bias": {"266": 100}, "temperature": 0,
        }),
    );
    assert_eq!((&ended["choices"][0]["stop_reason"], &ended["usage"]["completion_tokens"]), (&json!(266), &json!(1)));
    let later = ok(
        server.address(),
        "/v1/completions",
        &json!({
            "model": "story", "prompt": "Once", "max_tokens": 9, "stop_token_ids": [266], "min_tokens": 4, "temperature": 0,
            "logit_bias": {"266": 100},
        }),
    );
    assert_eq!(later["usage"]["completion_tokens"], 5);
}

#[test]
fn prompts_are_echoed_with_their_logprobs() {
    let server = serve();
    let (prompt, _) = golden();
    let body =
        json!({"model": "story", "prompt": prompt, "max_tokens": 1, "temperature": 0, "echo": true, "logprobs": 1});
    let choice = ok(server.address(), "/v1/completions", &body)["choices"][0].clone();
    let logprobs = &choice["logprobs"];
    assert_eq!(logprobs["tokens"].as_array().unwrap().len(), prompt.len() + 1);
    assert!(logprobs["token_logprobs"][0].is_null() && logprobs["token_logprobs"][1].as_f64().unwrap() < 0.0);
    let without = json!({"model": "story", "prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": 1});
    let alone = ok(server.address(), "/v1/completions", &without)["choices"][0].clone();
    assert!(choice["text"].as_str().unwrap().ends_with(alone["text"].as_str().unwrap()));
    assert_eq!(logprobs["token_logprobs"][prompt.len()], alone["logprobs"]["token_logprobs"][0]);
    // Nothing new at all: how those who measure models ask for a text's probability.
    let none = json!({"model": "story", "prompt": prompt, "max_tokens": 0, "echo": true, "logprobs": 1});
    let none = ok(server.address(), "/v1/completions", &none)["choices"][0].clone();
    assert_eq!(none["logprobs"]["tokens"].as_array().unwrap().len(), prompt.len());
}

#[test]
fn cached_beginnings_are_reported_and_refused() {
    let server = serve();
    let prompt: Vec<u32> = (0..70).map(|i| 3 + i * i % 200).collect();
    let cached = |more: Value| {
        let mut body = json!({"model": "story", "prompt": prompt, "max_tokens": 1});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ok(server.address(), "/v1/completions", &body)["usage"]["prompt_tokens_details"]["cached_tokens"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(cached(json!({})), 0);
    assert!(cached(json!({})) >= 32);
    assert_eq!(cached(json!({"cache_prompt": false})), 0);
    assert_eq!(cached(json!({"cache_salt": "mine"})), 0);
    assert!(cached(json!({"cache_salt": "mine"})) >= 32);
}

#[test]
fn models_are_listed_under_all_names() {
    let server = serve();
    let list = get(server.address(), "/v1/models").json();
    let names: Vec<&str> = list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["story", "org/story"]);
    let one = get(server.address(), "/v1/models/org/story").json();
    assert_eq!((&one["id"], &one["root"]), (&json!("org/story"), &json!("story")));
    let missing = get(server.address(), "/v1/models/other");
    assert_eq!((missing.status, &missing.json()["error"]["code"]), (404, &json!("model_not_found")));
}

#[test]
fn answers_have_the_form_that_is_asked_for() {
    let server = serve();
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["name", "age", "tags"],
        "properties": {
            "name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
        },
    });
    for seed in 0..8 {
        let body = json!({
            "model": "story", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 150, "seed": seed,
            "response_format": {"type": "json_schema", "json_schema": {"name": "person", "strict": true, "schema": schema}},
        });
        let choice = ok(server.address(), "/v1/chat/completions", &body)["choices"][0].clone();
        let text = choice["message"]["content"].as_str().unwrap();
        assert_eq!(choice["finish_reason"], "stop", "{text}");
        let person: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!(person.as_object().unwrap().len(), 3, "{text}");
        assert!(person["name"].as_str().unwrap().chars().count() <= 8, "{text}");
        assert!((0..=150).contains(&person["age"].as_i64().unwrap()), "{text}");
        let tags = person["tags"].as_array().unwrap();
        assert!(tags.len() <= 2 && tags.iter().all(|tag| *tag == "a" || *tag == "b"), "{text}");
    }
    let unknown = json!({
        "model": "story", "messages": [{"role": "user", "content": "Hello"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
            "type": "object", "unevaluatedProperties": false, "anyOf": [{"required": ["a"]}],
        }}},
    });
    let refused = post(server.address(), "/v1/chat/completions", &unknown);
    assert!(refused.status == 400 && refused.text().contains("unevaluatedProperties"), "{}", refused.text());
}

#[test]
fn calls_that_have_to_come_come() {
    let engine = yirage_engine::EngineOptions { context: Some(512), ..support::engine_options() };
    let server = support::serve_with(support::options(), vec![support::story(engine)]);
    let parameters = json!({"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"], "additionalProperties": false});
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    for (choice, names) in [
        (json!("required"), vec!["one", "two"]),
        (json!({"type": "function", "function": {"name": "two"}}), vec!["two"]),
    ] {
        let mut body = json!({
            "model": "story", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 100, "seed": 4,
            "tools": [tool("one"), tool("two")], "tool_choice": choice, "parallel_tool_calls": false,
        });
        let whole = ok(server.address(), "/v1/chat/completions", &body)["choices"][0].clone();
        assert_eq!(whole["finish_reason"], "tool_calls", "{whole}");
        let call = &whole["message"]["tool_calls"][0]["function"];
        assert!(names.contains(&call["name"].as_str().unwrap()), "{call}");
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert!(arguments["x"] == 1 || arguments["x"] == 2, "{call}");
        body["stream"] = true.into();
        let events = post(server.address(), "/v1/chat/completions", &body).events();
        let parts = || events.iter().map(|event| &event["choices"][0]["delta"]["tool_calls"][0]);
        let joined = |key: &str| parts().filter_map(|part| part["function"][key].as_str()).collect::<String>();
        assert_eq!(json!({"name": joined("name"), "arguments": joined("arguments")}), *call);
        // The id and the name come once, and arguments as they are written.
        assert_eq!(parts().filter(|part| part["id"].is_string()).count(), 1);
        assert!(parts().filter(|part| part["function"]["arguments"].is_string()).count() > 2, "{events:?}");
        assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
    }
}
