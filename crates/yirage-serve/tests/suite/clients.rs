//! What eight clients send, as their public sources have it: every request of `fixtures/clients` is answered, and what
//! changes nothing in it is named. Kinds 31 and 33 of the public reports: Claude Code and llama.vim could not be served.

use crate::support::{self, Answered, fills_in, options, post, raw, request, serve_with, story_with};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use yirage_engine::EngineOptions;

const CLIENTS: &[(&str, &str)] = &[
    ("claude-code", include_str!("../fixtures/clients/claude-code.json")),
    ("codex", include_str!("../fixtures/clients/codex.json")),
    ("continue", include_str!("../fixtures/clients/continue.json")),
    ("cline", include_str!("../fixtures/clients/cline.json")),
    ("open-webui", include_str!("../fixtures/clients/open-webui.json")),
    ("llama-vim", include_str!("../fixtures/clients/llama-vim.json")),
    ("lm-studio", include_str!("../fixtures/clients/lm-studio.json")),
    ("ollama", include_str!("../fixtures/clients/ollama.json")),
];

/// One that names tools and says no more of them: agents send long lists, and ask for as many tokens as there are.
const TEMPLATE: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}\
    {% if tools %}<tool_call>{% for t in tools %} {{ t.function.name }}{% endfor %}{% endif %}{% if enable_thinking %}<think>{% endif %}\
    {% if add_generation_prompt %}assistant:{% endif %}{# </think> #}";

/// The objects of a stream of events, whatever their names.
fn events(answered: &Answered) -> Vec<Value> {
    let data = answered.text().lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The text of an answer of any protocol, whole or in parts.
fn text(answered: &Answered) -> String {
    let objects = match answered.header("content-type").unwrap() {
        "text/event-stream" => events(answered),
        "application/x-ndjson" => answered.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        _ => vec![answered.json()],
    };
    let places = [
        "/choices/0/message/content",
        "/choices/0/delta/content",
        "/choices/0/text",
        "/output_text",
        "/content/0/text",
        "/message/content",
        "/response",
        "/content",
    ];
    let delta = |object: &Value| match object["type"].as_str() {
        Some("content_block_delta") => object["delta"]["text"].as_str().map(str::to_owned),
        Some("response.output_text.delta") => object["delta"].as_str().map(str::to_owned),
        _ => places.iter().find_map(|place| object.pointer(place)?.as_str().map(str::to_owned)),
    };
    objects.iter().filter_map(delta).collect()
}

/// Whether an answer is one as its client expects it.
fn check(kind: &str, answered: &Answered) {
    let last = |answered: &Answered| events(answered).last().unwrap().clone();
    match kind {
        "message" => match answered.header("content-type") {
            Some("text/event-stream") => assert_eq!(last(answered)["type"], "message_stop"),
            _ => assert_eq!(answered.json()["type"], "message"),
        },
        "response" => {
            let last = last(answered);
            assert!(["response.completed", "response.incomplete"].contains(&last["type"].as_str().unwrap()), "{last}");
            assert_eq!(last["response"]["usage"]["input_tokens_details"]["cache_write_tokens"], 0);
        }
        "chunks" => assert!(answered.text().ends_with("data: [DONE]\n\n"), "{}", answered.text()),
        "chat" => assert!(answered.json()["choices"][0]["message"]["content"].is_string()),
        "text" => assert!(answered.json()["choices"][0]["text"].is_string()),
        "llama" => assert_eq!(last(answered)["stop"], true),
        "llama-whole" => assert!(answered.json()["timings"]["prompt_ms"].is_number()),
        "lines" => {
            let last: Value = serde_json::from_str(answered.text().lines().last().unwrap()).unwrap();
            assert_eq!(last["done"], true);
        }
        "ollama" => assert_eq!(answered.json()["done"], true),
        // Of the fields that were asked for those that are there, under the names by which they were asked for.
        "nothing" => assert_eq!(answered.json(), serde_json::json!({})),
        "filled" => {
            let all = answered.json();
            let names: BTreeSet<&str> = all.as_object().unwrap().keys().map(String::as_str).collect();
            let wanted = [
                "content",
                "timings/predicted_ms",
                "timings/predicted_n",
                "timings/predicted_per_second",
                "timings/prompt_ms",
                "timings/prompt_n",
                "timings/prompt_per_second",
                "tokens_cached",
                "truncated",
            ];
            assert_eq!(names, BTreeSet::from(wanted));
            let lines = all["content"].as_str().unwrap().split('\n').skip(1).filter(|line| !line.trim().is_empty());
            lines.for_each(|line| assert!(line.starts_with("    "), "{line:?}"));
        }
        "title" => {
            let title: Value = serde_json::from_str(&text(answered)).unwrap();
            assert!(title["title"].as_str().unwrap().chars().count() <= 20, "{title}");
        }
        "files" => {
            let files: Value = serde_json::from_str(&text(answered)).unwrap();
            assert!(files["files"].as_array().unwrap().iter().all(|file| file == "a" || file == "b"), "{files}");
        }
        other => panic!("no kind of answer is called {other}"),
    }
}

#[test]
fn every_request_of_eight_clients_is_answered() {
    let engine = EngineOptions { context: Some(1024), ..support::engine_options() };
    let server = serve_with(options(), vec![story_with(engine.clone(), TEMPLATE)]);
    let filler = serve_with(options(), vec![fills_in(engine)]);
    let mut wrong = Vec::new();
    for (client, text) in CLIENTS {
        let fixture: Value = serde_json::from_str(text).unwrap();
        for of in fixture["requests"].as_array().unwrap() {
            let place = format!("{client}, {}", of["name"]);
            let headers = of["headers"].as_object().unwrap();
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
            let body = of.get("body").map(Value::to_string).unwrap_or_default();
            let path = of["path"].as_str().unwrap();
            let address = if path == "/infill" { filler.address() } else { server.address() };
            let answered = raw(address, &request(of["method"].as_str().unwrap(), path, &headers, body.as_bytes()));
            if answered.status != 200 {
                wrong.push(format!("{place}: {} {}", answered.status, answered.text()));
                continue;
            }
            let ignored: BTreeSet<&str> =
                answered.header("x-yirage-ignored").into_iter().flat_map(|all| all.split(',')).collect();
            let wanted: BTreeSet<&str> =
                of["ignored"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            if ignored != wanted {
                wrong.push(format!("{place}: ignored {ignored:?}, not {wanted:?}"));
            }
            if let Some(kind) = of["answer"].as_str() {
                check(kind, &answered);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a body with each of these fields is answered, and each of those that change nothing is named.
fn each_is_answered(address: std::net::SocketAddr, path: &str, body: &Value, fields: &[(&str, Value, bool)]) {
    let mut wrong = Vec::new();
    for (field, value, named) in fields {
        let mut body = body.clone();
        // A dotted name stands for a field of an object, `*` for one of each element.
        let names: Vec<&str> = field.split('.').collect();
        let mut place = &mut body;
        for name in &names {
            place = if *name == "*" { &mut place[0] } else { &mut place[*name] };
        }
        *place = value.clone();
        let name = field.replace(".*", "");
        let answered = post(address, path, &body);
        let ignored = answered.header("x-yirage-ignored").unwrap_or_default();
        if answered.status != 200 || (*named && !ignored.split(',').any(|one| one == name)) {
            wrong.push(format!("{path}, {field}: {} {ignored:?} {}", answered.status, answered.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Kind of case 31: what else Anthropic's interface has and its clients send is answered, and named where it changes
/// nothing.
#[test]
fn what_anthropics_clients_may_send_is_answered() {
    let server = serve_with(options(), vec![story_with(support::engine_options(), TEMPLATE)]);
    let tool = json!({"name": "f", "description": "d", "input_schema": {"type": "object"}});
    let said = json!([{"type": "text", "text": "Hi"}]);
    let body = json!({"model": "story", "max_tokens": 2, "messages": [{"role": "user", "content": said}]});
    each_is_answered(
        server.address(),
        "/v1/messages",
        &body,
        &[
            ("output_config", json!({"effort": "low"}), false),
            ("output_config", json!({"effort": "max"}), false),
            ("output_config", json!({"effort": null, "format": null}), false),
            ("output_config", json!(null), false),
            ("output_config.task_budget", json!({"type": "tokens", "total": 20_000}), true),
            ("output_config.verbosity", json!("low"), true),
            ("context_management", json!({"edits": [{"type": "clear_tool_uses_20250919"}]}), true),
            ("context_management", json!({"edits": [{"type": "compact_20260112"}]}), true),
            ("thinking", json!({"type": "adaptive"}), false),
            ("thinking", json!({"type": "adaptive", "display": "omitted"}), false),
            ("service_tier", json!("standard_only"), true),
            ("inference_geo", json!("us"), true),
            ("container", json!({"skills": [{"type": "anthropic", "skill_id": "pdf"}]}), true),
            ("mcp_servers", json!([{"type": "url", "url": "https://mcp.example", "name": "m"}]), true),
            ("cache_control", json!({"type": "ephemeral", "ttl": "1h"}), true),
            ("betas", json!(["context-1m-2025-08-07"]), true),
            ("speed", json!("fast"), true),
            ("user_profile_id", json!("u"), true),
            ("messages.*.content.*.citations", json!([]), true),
        ],
    );
    let mut with_tools = body.clone();
    with_tools["tools"] = json!([tool]);
    each_is_answered(
        server.address(),
        "/v1/messages",
        &with_tools,
        &[
            ("tools.*.defer_loading", json!(true), true),
            ("tools.*.allowed_callers", json!(["code_execution_20250825"]), true),
            ("tools.*.input_examples", json!([{}]), true),
            ("tools.*.eager_input_streaming", json!(true), true),
            ("tools.*.type", json!("custom"), false),
            ("tool_choice", json!({"type": "auto", "disable_parallel_tool_use": true}), false),
        ],
    );
}

/// Kind of case 33: the other settings of llama.cpp's server, as its own page and editors send them: at values that ask for
/// nothing all of them, and those that change nothing at any.
#[test]
fn what_clients_of_llama_cpp_may_send_is_answered() {
    let engine = EngineOptions { context: Some(1024), ..support::engine_options() };
    let server = serve_with(options(), vec![fills_in(engine)]);
    let fields = [
        ("dynatemp_range", json!(0), false),
        ("dynatemp_exponent", json!(1), true),
        ("xtc_probability", json!(0), false),
        ("xtc_threshold", json!(0.1), true),
        ("typ_p", json!(1), false),
        ("typical_p", json!(1.0), false),
        ("repeat_last_n", json!(64), true),
        ("dry_multiplier", json!(0.0), false),
        ("dry_base", json!(1.75), true),
        ("dry_allowed_length", json!(2), true),
        ("dry_penalty_last_n", json!(-1), true),
        ("dry_sequence_breakers", json!(["\n", ":"]), true),
        ("mirostat", json!(0), false),
        ("mirostat_tau", json!(5.0), true),
        ("mirostat_eta", json!(0.1), true),
        ("min_keep", json!(0), true),
        ("n_keep", json!(-1), true),
        ("n_discard", json!(0), true),
        ("n_cache_reuse", json!(256), true),
        ("n_probs", json!(0), false),
        ("post_sampling_probs", json!(false), false),
        ("n_cmpl", json!(1), false),
        ("timings_per_token", json!(true), true),
        ("return_progress", json!(true), true),
        ("top_n_sigma", json!(-1), false),
        ("penalize_nl", json!(false), true),
        ("tfs_z", json!(1), true),
        ("slot_id", json!(-1), true),
        ("id_slot", json!(0), false),
        ("samplers", json!(["top_k", "infill"]), true),
        ("t_max_prompt_ms", json!(500), true),
        ("t_max_predict_ms", json!(-1), false),
        ("n_indent", json!(4), false),
        ("lora", json!([]), false),
    ];
    let gap = json!({"input_prefix": "Once", "input_suffix": "end", "prompt": "", "n_predict": 2});
    each_is_answered(server.address(), "/infill", &gap, &fields);
    each_is_answered(server.address(), "/completion", &json!({"prompt": "Once", "n_predict": 2}), &fields);
}
