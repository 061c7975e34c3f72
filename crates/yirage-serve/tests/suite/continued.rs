//! A last message of the assistant is gone on from, for every protocol alike (kind 11 of the public reports), and what a
//! client asks for beyond what there is, a model or tokens, is answered and said.

use crate::support::{self, engine_options, get, ok, options, post, serve, serve_with, story, story_with};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Marks around each message, as many models have them.
const MARKS: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// One that trims what is said.
const TRIMS: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}[/{{ m.role }}]{% endfor %}\
    {% if add_generation_prompt %}[assistant]{% endif %}";

/// One that says something behind the last message.
const REMINDS: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}Be brief.\n\
    {% if add_generation_prompt %}assistant: {% endif %}";

/// One that leaves the assistant's texts out.
const DROPS: &str = "{% for m in messages if m.role != 'assistant' %}{{ m.content }}{% endfor %}>";

/// One that wants the user to speak last.
const RAISES: &str = "{% if messages[-1].role != 'user' %}{{ raise_exception('the user speaks last') }}{% endif %}>";

fn prompt(address: SocketAddr, messages: &Value, more: &Value) -> String {
    let mut body = json!({"model": "story", "messages": messages});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ok(address, "/apply-template", &body)["prompt"].as_str().unwrap().to_owned()
}

#[test]
fn prompts_end_with_what_is_gone_on_from() {
    for (template, said, end) in [
        (MARKS, "Hello, my", "<|im_start|>assistant\nHello, my"),
        // The text of a mark is not taken for the message.
        (MARKS, "im", "<|im_start|>assistant\nim"),
        (MARKS, "<|im_end|>", "<|im_start|>assistant\n<|im_end|>"),
        (MARKS, "a\n\n", "<|im_start|>assistant\na\n\n"),
        (TRIMS, "assistant", "[assistant]assistant"),
        (TRIMS, "  Hello ", "[assistant]Hello "),
        (REMINDS, "Be", "assistant: Be"),
        (REMINDS, "\u{1f600} 2 < 3", "assistant: \u{1f600} 2 < 3"),
        (support::TEMPLATE, "goes0on0here", "assistant: goes0on0here"),
    ] {
        let server = serve_with(options(), vec![story_with(engine_options(), template)]);
        let messages = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": said}]);
        let continued = prompt(server.address(), &messages, &json!({}));
        assert!(continued.ends_with(end), "{continued:?} does not end with {end:?}");
        let parts = json!([messages[0], {"role": "assistant", "content": [{"type": "text", "text": said}]}]);
        assert_eq!(prompt(server.address(), &parts, &json!({})), continued);
        // A new message where that is asked for, and where the last one says nothing.
        let anew = prompt(server.address(), &messages, &json!({"continue_final_message": false}));
        let begun = prompt(server.address(), &json!([messages[0]]), &json!({}));
        let mark =
            &begun[prompt(server.address(), &json!([messages[0]]), &json!({"add_generation_prompt": false})).len()..];
        assert!(anew.len() > continued.len() && anew.ends_with(mark), "{anew:?}");
        let empty = json!([messages[0], {"role": "assistant", "content": ""}]);
        assert_eq!(prompt(server.address(), &empty, &json!({})), begun);
    }
}

/// The same conversation in each protocol, and where the answer stands.
fn everywhere(messages: &Value) -> Vec<(&'static str, Value, &'static str)> {
    let limit = json!({"num_predict": 8, "temperature": 0});
    vec![
        (
            "/v1/chat/completions",
            json!({"messages": messages, "max_tokens": 8, "temperature": 0}),
            "/choices/0/message/content",
        ),
        ("/v1/messages", json!({"messages": messages, "max_tokens": 8, "temperature": 0}), "/content/0/text"),
        ("/v1/responses", json!({"input": messages, "max_output_tokens": 8, "temperature": 0}), "/output_text"),
        ("/api/chat", json!({"messages": messages, "options": limit, "stream": false}), "/message/content"),
    ]
}

#[test]
fn every_protocol_goes_on_and_says_only_what_is_new() {
    let server = serve();
    let messages = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Once upon a"}]);
    let prompt = prompt(server.address(), &messages, &json!({}));
    assert!(prompt.ends_with("assistant: Once upon a"), "{prompt}");
    let text = json!({"prompt": prompt, "max_tokens": 8, "temperature": 0});
    let same = ok(server.address(), "/v1/completions", &text)["choices"][0]["text"].as_str().unwrap().to_owned();
    for (path, body, place) in everywhere(&messages) {
        let answered = ok(server.address(), path, &body);
        assert_eq!(answered.pointer(place).unwrap().as_str().unwrap(), same, "{path}");
    }
    let words = [
        json!({"continue_final_message": true, "add_generation_prompt": false}),
        json!({"continue_final_message": true}),
    ];
    for more in words {
        let mut body = json!({"messages": messages, "max_tokens": 8, "temperature": 0});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(ok(server.address(), "/v1/chat/completions", &body)["choices"][0]["message"]["content"], same);
    }
    let mut prefix = json!({"messages": messages, "max_tokens": 8, "temperature": 0});
    prefix["messages"][1]["prefix"] = true.into();
    assert_eq!(ok(server.address(), "/v1/chat/completions", &prefix)["choices"][0]["message"]["content"], same);
    // What was gone on from and what came are one message for a later request.
    let first = ok(server.address(), "/v1/responses", &everywhere(&messages)[2].1);
    let next =
        json!({"input": "And then?", "previous_response_id": first["id"], "max_output_tokens": 4, "temperature": 0});
    let all = json!([messages[0], {"role": "assistant", "content": format!("Once upon a{same}")}, {"role": "user", "content": "And then?"}]);
    let sent = json!({"input": all, "max_output_tokens": 4, "temperature": 0});
    let (next, sent) = (ok(server.address(), "/v1/responses", &next), ok(server.address(), "/v1/responses", &sent));
    assert_eq!(
        (&next["output_text"], &next["usage"]["input_tokens"]),
        (&sent["output_text"], &sent["usage"]["input_tokens"])
    );
}

#[test]
fn what_cannot_be_gone_on_from_is_refused_everywhere() {
    let messages = |last: Value| json!([{"role": "user", "content": "Hi"}, last]);
    for template in [DROPS, RAISES] {
        let server = serve_with(options(), vec![story_with(engine_options(), template)]);
        for (path, body, _) in everywhere(&messages(json!({"role": "assistant", "content": "Once upon a"}))) {
            let answered = post(server.address(), path, &body);
            assert_eq!(answered.status, 400, "{path}: {}", answered.text());
        }
    }
    let server = serve();
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    for (last, more) in [
        (json!({"role": "assistant", "content": "a", "tool_calls": [call]}), json!({})),
        (json!({"role": "assistant", "content": "", "reasoning_content": "hm"}), json!({})),
        (json!({"role": "assistant", "content": "{"}), json!({"response_format": {"type": "json_object"}})),
        (json!({"role": "user", "content": "a"}), json!({"continue_final_message": true})),
        (json!({"role": "user", "content": "a", "prefix": true}), json!({})),
        (
            json!({"role": "assistant", "content": "a"}),
            json!({"continue_final_message": true, "add_generation_prompt": true}),
        ),
    ] {
        let mut body = json!({"messages": messages(last.clone()), "max_tokens": 2});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answered = post(server.address(), "/v1/chat/completions", &body);
        assert_eq!(answered.status, 400, "{last} {more}: {}", answered.text());
    }
    // Anthropic's clients are told so by these words.
    let spaced = json!({"messages": messages(json!({"role": "assistant", "content": "a "})), "max_tokens": 2});
    let answered = post(server.address(), "/v1/messages", &spaced);
    assert_eq!(answered.status, 400);
    assert!(answered.text().contains("trailing whitespace"), "{}", answered.text());
}

#[test]
fn more_tokens_than_there_is_room_for_are_cut_down_and_said() {
    let server = serve();
    let messages = json!([{"role": "user", "content": "Hi"}]);
    for (path, body) in [
        ("/v1/chat/completions", json!({"messages": messages, "max_tokens": 100_000})),
        ("/v1/chat/completions", json!({"messages": messages, "max_completion_tokens": 300, "stream": true})),
        ("/v1/completions", json!({"prompt": vec![5; 250], "max_tokens": 7})),
        ("/v1/completions", json!({"prompt": vec![5; 250], "max_tokens": 100, "stream": true})),
        ("/v1/messages", json!({"messages": messages, "max_tokens": 32_000})),
        ("/v1/responses", json!({"input": "Hi", "max_output_tokens": 128_000, "store": false})),
        ("/completion", json!({"prompt": "Once", "n_predict": 4096})),
        ("/api/chat", json!({"messages": messages, "options": {"num_predict": 4096}})),
        ("/api/generate", json!({"prompt": "Once", "options": {"num_predict": 4096}, "stream": false})),
    ] {
        let answered = post(server.address(), path, &body);
        assert_eq!(answered.status, 200, "{path}: {}", answered.text());
        let clipped = answered.header("x-yirage-clipped").unwrap_or_else(|| panic!("{path} {body}")).to_owned();
        let most: u32 = clipped.strip_prefix("max_tokens=").unwrap().parse().unwrap();
        assert!(most > 0 && most < 256, "{path}: {clipped}");
    }
    let fits = post(server.address(), "/v1/completions", &json!({"prompt": vec![5; 250], "max_tokens": 6}));
    assert_eq!((fits.status, fits.header("x-yirage-clipped")), (200, None));
}

#[test]
fn one_model_answers_to_every_name_and_says_so() {
    let server = serve();
    let messages = json!([{"role": "user", "content": "Hi"}]);
    for name in [
        "claude-sonnet-4-5-20250929",
        "gpt-5.2-codex",
        "llama3.2:latest",
        "qwen/qwen3-coder",
        "",
        " ",
        "story:latest:x",
    ] {
        let limit = json!({"model": name, "messages": messages, "max_tokens": 1});
        let ollama = json!({"model": name, "messages": messages, "options": {"num_predict": 1}});
        for (path, body) in [("/v1/chat/completions", &limit), ("/v1/messages", &limit), ("/api/chat", &ollama)] {
            let answered = post(server.address(), path, body);
            assert_eq!((answered.status, answered.header("x-yirage-model")), (200, Some("story")), "{path} {name:?}");
        }
    }
    for name in ["story", "org/story"] {
        let body = json!({"model": name, "messages": messages, "max_tokens": 1});
        assert_eq!(post(server.address(), "/v1/messages", &body).header("x-yirage-model"), None);
    }
    // What lists and moves models takes no other name, and of several none stands in for another.
    assert_eq!(get(server.address(), "/v1/models/gpt-4o").status, 404);
    assert_eq!(post(server.address(), "/api/show", &json!({"model": "gpt-4o"})).status, 404);
    assert_eq!(post(server.address(), "/models/load", &json!({"model": "gpt-4o"})).status, 404);
    let two = serve_with(options(), vec![story(engine_options()), support::encoder("embed")]);
    let body = json!({"model": "gpt-4o", "messages": messages, "max_tokens": 1});
    let answered = post(two.address(), "/v1/chat/completions", &body);
    assert_eq!((answered.status, &answered.json()["error"]["code"]), (404, &json!("model_not_found")));
    assert!(answered.text().contains("story, embed"), "{}", answered.text());
}

#[test]
fn input_items_are_listed() {
    let server = serve();
    let items = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]);
    let answer = ok(server.address(), "/v1/responses", &json!({"input": items, "max_output_tokens": 2}));
    assert_eq!(answer["output"][0]["status"], "incomplete");
    let path = format!("/v1/responses/{}/input_items", answer["id"].as_str().unwrap());
    let texts = |query: &str| {
        let list = get(server.address(), &format!("{path}{query}")).json();
        let data = list["data"].as_array().unwrap().clone();
        assert_eq!((&list["first_id"], &list["last_id"]), (&data[0]["id"], &data[data.len() - 1]["id"]));
        let texts: String = data.iter().map(|item| item["content"][0]["text"].as_str().unwrap().to_owned()).collect();
        (texts, list["has_more"] == true, list["last_id"].as_str().unwrap().to_owned())
    };
    assert_eq!(texts("").0, "cba");
    let (two, more, last) = texts("?order=asc&limit=2");
    assert_eq!((two.as_str(), more), ("ab", true));
    assert_eq!(texts(&format!("?order=asc&after={last}")).0, "c");
    for wrong in ["?limit=0", "?limit=x", "?order=up", "?after=nothing"] {
        assert_eq!(get(server.address(), &format!("{path}{wrong}")).status, 400, "{wrong}");
    }
    assert_eq!(get(server.address(), "/v1/responses/resp_none/input_items").status, 404);
}
