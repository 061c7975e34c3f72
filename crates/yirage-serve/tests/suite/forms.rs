//! Forms of answers: by every field that asks for one, behind thoughts, and as calls.

use crate::support::{self, ok, options, post, serve, serve_with, story};
use serde_json::{Value, json};
use yirage_engine::EngineOptions;
use yirage_serve::RunningServer;

/// A text that ends by itself.
fn text(server: &RunningServer, path: &str, more: &Value, seed: u64) -> String {
    let mut body = json!({"model": "story", "prompt": "Once", "max_tokens": 120, "seed": seed});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = ok(server.address(), path, &body);
    if path == "/completion" {
        assert_eq!(answer["stop_type"], "eos", "{answer}");
        return answer["content"].as_str().unwrap().to_owned();
    }
    assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{answer}");
    answer["choices"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn every_kind_of_form_is_kept() {
    let server = serve();
    let is_plate = |text: &str| {
        let (letters, digits) = text.split_once('-').unwrap_or_default();
        matches!(letters.len(), 1..=2)
            && letters.bytes().all(|b| b.is_ascii_uppercase())
            && digits.len() == 3
            && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let plate = "[A-Z]{1,2}-[0-9]{3}";
    let is_choice = |text: &str| ["yes", "no, never", "a (b) [c] {d} . * + ? | ^ $ \\ /"].contains(&text);
    let choice = json!(["yes", "no, never", "a (b) [c] {d} . * + ? | ^ $ \\ /"]);
    let is_nested = |text: &str| {
        let open = text.len().saturating_sub(1) / 2;
        text == format!("{}x{}", "(".repeat(open), ")".repeat(open))
    };
    let gbnf = "# nested\nroot ::= \"x\" | \"(\" inner\ninner ::= root \")\"";
    let is_list = |text: &str| {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or("?");
        inner.split(", ").all(|item| !item.is_empty() && item.len() <= 2 && item.bytes().all(|b| b.is_ascii_digit()))
    };
    let list = "root ::= \"[\" item (\", \" item){0,3} \"]\"\nitem ::= [0-9]{1,2}";
    let lark = "start: \"[\" ITEM (\", \" ITEM){0,3} \"]\"\nITEM: /[0-9]{1,2}/";
    let is_seven = |text: &str| text == "7";
    for seed in 0..3 {
        for (more, holds) in [
            (json!({"structured_outputs": {"regex": plate}}), &is_plate as &dyn Fn(&str) -> bool),
            (json!({"guided_regex": format!("^{plate}$")}), &is_plate),
            (json!({"structured_outputs": {"choice": choice}}), &is_choice),
            (json!({"guided_choice": choice}), &is_choice),
            (json!({"structured_outputs": {"grammar": gbnf}}), &is_nested),
            (json!({"guided_grammar": list}), &is_list),
            (json!({"structured_outputs": {"grammar": lark}}), &is_list),
            (json!({"structured_outputs": {"json": {"const": 7}}}), &is_seven),
            (json!({"guided_json": "{\"const\": 7}"}), &is_seven),
        ] {
            for path in ["/v1/completions", "/completion"] {
                let text = text(&server, path, &more, seed);
                assert!(holds(&text), "{path} {more}: {text:?}");
            }
        }
        for more in [json!({"grammar": list}), json!({"json_schema": {"const": 7}})] {
            let text = text(&server, "/completion", &more, seed);
            assert!(is_list(&text) || is_seven(&text), "{more}: {text:?}");
        }
    }
}

#[test]
fn forms_that_cannot_be_kept_are_refused_by_name() {
    let server = serve();
    let deep = format!("root ::= {}\"x\"{}", "(".repeat(100), ")".repeat(100));
    let chain: String = (0..500).map(|i| format!("a{i} ::= a{}\n", i + 1)).collect();
    let within = format!("start: {}\"x\"{}", "(".repeat(60), ")?".repeat(60));
    // What is as large as may be does no harm, whatever becomes of it.
    let lark_chain: String = (0..500).map(|i| format!("a{i}: a{} \"y\"?\n", i + 1)).collect();
    let terminals: String = (0..500).map(|i| format!("A{i}: A{} \"y\"?\n", i + 1)).collect();
    let loops: String = (0..400).map(|i| format!("a{i} ::= a{} \"y\" | \"x\"\n", (i + 1) % 400)).collect();
    for grammar in [
        within,
        format!("start: a0\n{lark_chain}a500: \"x\""),
        format!("start: A0\n{terminals}A500: \"x\""),
        format!("root ::= a0\n{loops}"),
        "start: /((((a{0,900}){0,900}){0,900}){0,900})/".to_owned(),
    ] {
        let body = json!({"model": "story", "prompt": "Once", "max_tokens": 2, "guided_grammar": grammar});
        let answered = post(server.address(), "/v1/completions", &body);
        assert!(matches!(answered.status, 200 | 400), "{}: {}", &grammar[..30], answered.text());
    }
    for (more, param, what) in [
        (
            json!({"structured_outputs": {"json": {"unevaluatedProperties": false, "anyOf": [{"required": ["a"]}]}}}),
            "structured_outputs.json",
            "unevaluatedProperties",
        ),
        (
            json!({"guided_json": {"unevaluatedProperties": false, "oneOf": [{"type": "object"}]}}),
            "guided_json",
            "unevaluatedProperties",
        ),
        (json!({"structured_outputs": {"regex": "(?=a)b"}}), "structured_outputs.regex", "look"),
        (json!({"guided_regex": "("}), "guided_regex", ""),
        (json!({"structured_outputs": {"grammar": "root ::= b"}}), "structured_outputs.grammar", "no rule `b`"),
        (json!({"guided_grammar": "start: nothing"}), "guided_grammar", "nothing"),
        (json!({"guided_grammar": deep}), "guided_grammar", "brackets"),
        (
            json!({"guided_grammar": format!("root ::= a0\n{chain}a500 ::= \"x\"")}),
            "guided_grammar",
            "lead to each other",
        ),
        (json!({"guided_regex": "a", "guided_choice": ["a"]}), "guided_choice", "exclude each other"),
    ] {
        let mut body = json!({"model": "story", "prompt": "Once", "max_tokens": 2});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let refused = post(server.address(), "/v1/completions", &body);
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!(param)), "{}", refused.text());
        assert!(refused.json()["error"]["message"].as_str().unwrap().contains(what), "{}", refused.text());
    }
    ok(server.address(), "/v1/completions", &json!({"model": "story", "prompt": "Once", "max_tokens": 2}));
}

/// Hundreds of rules that go on in each other, so that a parser's row grows with every letter: the grammar has room, its first
/// token has, and a row behind some more has none.
#[test]
fn a_limit_that_is_met_within_an_answer_ends_it_with_an_error() {
    let server = serve();
    let names = |of: std::ops::Range<usize>, mark: &str| {
        of.map(|i| format!("{mark}r{}", i % 480)).collect::<Vec<String>>().join(" | ")
    };
    let rules: String = (0..480).map(|i| format!("r{i}: {} | \"a\"\n", names(i..i + 6, "\"a\" "))).collect();
    let mut body = json!({
        "model": "story", "prompt": "Once", "max_tokens": 120, "min_tokens": 120, "temperature": 0,
        "guided_grammar": format!("start: {}\n{rules}", names(0..480, "")),
    });
    let whole = post(server.address(), "/v1/completions", &body);
    let error = &whole.json()["error"];
    assert_eq!((whole.status, &error["type"]), (400, &json!("invalid_request_error")), "{}", whole.text());
    assert!(error["message"].as_str().unwrap().contains("too large"), "{error}");
    body["stream"] = true.into();
    let streamed = post(server.address(), "/v1/completions", &body);
    assert!(
        streamed.text().contains("too large") && !streamed.text().contains("finish_reason\":\"stop"),
        "{}",
        streamed.text()
    );
    ok(server.address(), "/v1/completions", &json!({"model": "story", "prompt": "Once", "max_tokens": 2}));
}

#[test]
fn several_calls_may_have_to_come() {
    let engine = EngineOptions { context: Some(2048), ..support::engine_options() };
    let server = serve_with(options(), vec![story(engine)]);
    // A schema that refers to itself, as clients' libraries write them.
    let parameters = json!({
        "type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "required": ["x"], "additionalProperties": false,
        "$defs": {"X": {"enum": [1, 2]}},
    });
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let mut body = json!({
        "model": "story", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1000, "temperature": 1.5,
        "tools": [tool("one"), tool("two")], "tool_choice": "required",
    });
    let mut counts = Vec::new();
    for seed in 0..6 {
        body["seed"] = seed.into();
        for parallel in [true, false] {
            body["parallel_tool_calls"] = parallel.into();
            let choice = ok(server.address(), "/v1/chat/completions", &body)["choices"][0].clone();
            if choice["finish_reason"] == "length" {
                continue;
            }
            let calls = choice["message"]["tool_calls"].as_array().unwrap().clone();
            for call in &calls {
                let name = call["function"]["name"].as_str().unwrap();
                let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
                assert!(
                    matches!(name, "one" | "two") && (arguments == json!({"x": 1}) || arguments == json!({"x": 2}))
                );
            }
            assert!(parallel || calls.len() == 1, "{choice}");
            counts.push(calls.len());
        }
    }
    assert!(counts.iter().any(|count| *count > 1) && counts.contains(&1), "{counts:?}");
}

/// A conversation whose prompt ends in an open thought.
fn thinking(more: &Value) -> Value {
    let mut body = json!({
        "model": "story", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 60, "seed": 1,
        "reasoning_effort": "high", "add_generation_prompt": false,
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn thoughts_end_within_their_budget() {
    let server = serve();
    let ask = |more: Value| ok(server.address(), "/v1/chat/completions", &thinking(&more));
    let free = ask(json!({}));
    assert_eq!(free["choices"][0]["message"]["content"], "");
    let whole = free["choices"][0]["message"]["reasoning_content"].as_str().unwrap();
    for more in [
        json!({"thinking_token_budget": 5}),
        json!({"thinking_budget_tokens": 5}),
        json!({"reasoning": {"budget": 5}}),
        json!({"reasoning": {"max_tokens": 5}}),
    ] {
        let cut = ask(more.clone());
        let message = &cut["choices"][0]["message"];
        let thought = message["reasoning_content"].as_str().unwrap();
        assert!(whole.starts_with(thought.trim_end()) && thought.len() < whole.len(), "{more}: {message}");
        assert!(!message["content"].as_str().unwrap().is_empty(), "{more}: {message}");
        let tokens = cut["usage"]["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap();
        // The mark has a token for each letter at most.
        assert!((5..=5 + 9).contains(&tokens), "{more}: {tokens}");
    }
    let none = ask(json!({"thinking_token_budget": 0}));
    assert!(none["choices"][0]["message"]["reasoning_content"].as_str().unwrap_or_default().trim().is_empty());
    assert_eq!(ask(json!({"thinking_token_budget": -1}))["choices"], free["choices"]);
    let two = post(
        server.address(),
        "/v1/chat/completions",
        &thinking(&json!({"thinking_token_budget": 5, "thinking_budget_tokens": 6})),
    );
    assert_eq!((two.status, &two.json()["error"]["param"]), (400, &json!("thinking_budget_tokens")));
    // Where nothing is thought, it is said that the budget changes nothing.
    let call = json!({
        "model": "story", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 60,
        "thinking_token_budget": 5, "tool_choice": "required",
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
    });
    let answered = post(server.address(), "/v1/chat/completions", &call);
    assert_eq!(answered.header("x-yirage-ignored"), Some("thinking_token_budget"), "{}", answered.text());
}

#[test]
fn a_form_begins_behind_thoughts() {
    let server = serve();
    for seed in 0..4 {
        let more = json!({
            "seed": seed, "thinking_token_budget": 7, "max_tokens": 80,
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"enum": [7, "seven"]}}},
        });
        let choice = ok(server.address(), "/v1/chat/completions", &thinking(&more))["choices"][0].clone();
        let text = choice["message"]["content"].as_str().unwrap();
        assert!(text == "7" || text == "\"seven\"", "{choice}");
        assert!(!choice["message"]["reasoning_content"].as_str().unwrap().is_empty(), "{choice}");
    }
}

#[test]
fn the_other_protocols_have_forms_and_budgets() {
    let server = serve();
    let address = server.address();
    let format = json!({"type": "json_schema", "name": "n", "strict": true, "schema": {"const": 7}});
    let body = json!({"model": "story", "input": "Hello", "text": {"format": format}});
    assert_eq!(ok(address, "/v1/responses", &body)["output_text"], "7");
    let body = json!({"model": "story", "messages": [{"role": "user", "content": "Hello"}], "format": {"const": 7}, "stream": false});
    assert_eq!(ok(address, "/api/chat", &body)["message"]["content"], "7");
    let body = json!({
        "model": "story", "max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    });
    let answered = post(address, "/v1/messages", &body);
    assert_eq!((answered.status, answered.header("x-yirage-ignored")), (200, None), "{}", answered.text());
}

/// The library that enforces schemas quotes what is wrong, cut at a byte that may lie within a character.
#[test]
fn schemas_with_values_of_the_wrong_kind_are_the_clients_mistake() {
    let server = serve();
    let long = format!("a{}", "ä".repeat(60));
    for keyword in ["$ref", "pattern", "format", "minimum", "multipleOf", "exclusiveMinimum"] {
        let schema = json!({"type": ["string", "number"], keyword: [long]});
        let body = json!({"model": "story", "prompt": "a", "max_tokens": 2, "guided_json": schema});
        let refused = post(server.address(), "/v1/completions", &body);
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("guided_json")), "{keyword}");
        assert!(refused.text().contains(keyword), "{}", refused.text());
    }
}
