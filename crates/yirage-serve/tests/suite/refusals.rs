//! What is refused: every field by its name, bodies of any bytes, too much of anything. Nothing of it harms the server.

use crate::support::{self, Answered, connect, get, ok, options, post, raw, read, request, serve, serve_with};
use serde_json::{Value, json};
use std::io::Write;
use yirage_engine::EngineOptions;
use yirage_serve::ServeOptions;
use yirage_testkit::rng::Rng;

fn with(base: &Value, more: &Value) -> Value {
    let mut body = base.clone();
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn refused(answered: &Answered, param: &str) {
    assert_eq!(answered.status, 400, "{param}: {}", answered.text());
    let error = &answered.json()["error"];
    assert_eq!(error["param"], param, "{error}");
    assert_eq!(error["type"], "invalid_request_error");
    assert!(error["message"].as_str().is_some_and(|text| text.len() > 10), "{error}");
}

#[test]
fn fields_are_refused_by_name() {
    let server = serve();
    let chat = json!({"model": "story", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2});
    for (more, param) in [
        (json!({"guided_json": 3}), "guided_json"),
        (json!({"temprature": 1}), "temprature"),
        (json!({"temperature": 101}), "temperature"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"top_p": 0}), "top_p"),
        (json!({"top_k": -2}), "top_k"),
        (json!({"min_p": 2}), "min_p"),
        (json!({"presence_penalty": 3}), "presence_penalty"),
        (json!({"frequency_penalty": -3}), "frequency_penalty"),
        (json!({"repetition_penalty": 0}), "repetition_penalty"),
        (json!({"seed": 1.5}), "seed"),
        (json!({"n": 0}), "n"),
        (json!({"n": 1000}), "n"),
        (json!({"stop": 3}), "stop"),
        (json!({"stop": [""]}), "stop"),
        (json!({"logit_bias": {"x": 1}}), "logit_bias"),
        (json!({"logit_bias": {"99999": 1}}), "logit_bias"),
        (json!({"logit_bias": {"3": 101}}), "logit_bias.3"),
        (json!({"max_tokens": -2}), "max_tokens"),
        (json!({"logit_bias": [[3]]}), "logit_bias"),
        (json!({"logit_bias": [[3, 1], ["Hello", 1]]}), "logit_bias"),
        (json!({"logit_bias": [[3, true]]}), "logit_bias.3"),
        (json!({"top_logprobs": 2}), "top_logprobs"),
        (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs"),
        (json!({"stream": true, "stream_options": {"include_usages": true}}), "stream_options.include_usages"),
        (json!({"modalities": ["audio"]}), "modalities"),
        (json!({"functions": [{}]}), "functions[0].name"),
        (json!({"priority": 3}), "priority"),
        (json!({"use_beam_search": true}), "use_beam_search"),
        (json!({"tools": [{"type": "code_interpreter"}], "tool_choice": "required"}), "tool_choice"),
        (json!({"tools": [{"type": "code_interpreter"}], "tool_choice": {"type": "code_interpreter"}}), "tool_choice"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"response_format": {"type": "yaml"}}), "response_format"),
        (json!({"messages": "hello"}), "messages"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}),
            "messages[0].content[0]",
        ),
        (json!({"messages": [{"role": "king", "content": "x"}]}), "messages[0].role"),
        (json!({"allowed_token_ids": [512]}), "allowed_token_ids"),
        (json!({"min_tokens": 5}), "min_tokens"),
    ] {
        refused(&post(server.address(), "/v1/chat/completions", &with(&chat, &more)), param);
    }
    let text = json!({"model": "story", "prompt": "Once", "max_tokens": 2});
    for (more, param) in [
        (json!({"suffix": "end"}), "suffix"),
        (json!({"best_of": 3}), "best_of"),
        (json!({"logprobs": 21}), "logprobs"),
        (json!({"prompt": []}), "prompt"),
        (json!({"prompt": [1, "a"]}), "prompt[0]"),
        (json!({"prompt": null}), "prompt"),
    ] {
        refused(&post(server.address(), "/v1/completions", &with(&text, &more)), param);
    }
    // What asks for nothing is taken, and what changes nothing is named.
    let more = json!({"store": false, "user": "u", "metadata": {"a": "b"}, "audio": null, "modalities": ["text"], "functions": [],
        "client_metadata": {}, "n\u{e9}": 1});
    let answered = post(server.address(), "/v1/chat/completions", &with(&chat, &more));
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert_eq!(answered.header("x-yirage-ignored"), Some("client_metadata,metadata,n?,user"));
}

#[test]
fn prompts_beyond_the_context_are_refused_with_numbers() {
    let server = serve();
    for (stream, most) in [(false, json!(10)), (true, json!(null)), (false, json!(0))] {
        let body = json!({"model": "story", "prompt": vec![5; 259], "max_tokens": most, "stream": stream});
        let answered = post(server.address(), "/v1/completions", &body);
        let error = answered.json()["error"].clone();
        assert_eq!((answered.status, &error["code"]), (400, &json!("context_length_exceeded")));
        assert!(error["message"].as_str().unwrap().contains("260 exceed the context of 256 by 4"), "{error}");
    }
    let long = json!([{"role": "user", "content": "once upon a time ".repeat(100)}]);
    let claude = post(server.address(), "/v1/messages", &json!({"max_tokens": 1, "messages": long}));
    assert!(
        claude.json()["error"]["message"].as_str().unwrap().starts_with("prompt is too long: "),
        "{}",
        claude.text()
    );
    let unknown = post(server.address(), "/v1/completions", &json!({"model": "story", "prompt": [1, 512]}));
    assert_eq!(unknown.status, 400, "{}", unknown.text());
}

/// Bodies that every endpoint takes, with something of every kind in them.
fn good() -> Vec<(&'static str, Value)> {
    let mark = json!({"type": "ephemeral"});
    let text = json!([{"type": "text", "text": "Hello", "cache_control": mark}]);
    let tool =
        json!({"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"x": {"enum": [1]}}}});
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}});
    vec![
        (
            "/v1/chat/completions",
            json!({
                "model": "story", "max_tokens": 1, "tools": [{"type": "function", "function": tool}], "tool_choice": "auto",
                "messages": [{"role": "user", "content": text}, {"role": "assistant", "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c", "content": "2"}],
                "response_format": {"type": "text"}, "reasoning": {"effort": "low", "budget": 3}, "logit_bias": {"5": 1},
            }),
        ),
        (
            "/v1/completions",
            json!({"model": "story", "prompt": ["Once", [5]], "max_tokens": 1, "guided_regex": "[a-z]+", "stop": ["x"]}),
        ),
        (
            "/v1/completions",
            json!({"prompt": "Once", "max_tokens": 1, "grammar": "root ::= \"a\" | [b-d] root (\"e\"){1,2}\n"}),
        ),
        (
            "/v1/responses",
            json!({
                "model": "story", "max_output_tokens": 1, "text": {"format": {"type": "json_object"}},
                "input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]},
                    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "2"}],
            }),
        ),
        (
            "/v1/messages",
            json!({
                "model": "story", "max_tokens": 1, "system": text, "thinking": {"type": "enabled", "budget_tokens": 3},
                "messages": [{"role": "user", "content": text}], "tools": [{"name": "f", "input_schema": {"type": "object"}}],
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
            }),
        ),
        ("/completion", json!({"prompt": "Once", "n_predict": 1, "json_schema": {"enum": [1]}})),
        ("/infill", json!({"input_prefix": "a", "input_suffix": "b", "input_extra": [{"filename": "f", "text": "t"}]})),
        ("/tokenize", json!({"content": "Once", "add_special": true, "with_pieces": true})),
        (
            "/api/chat",
            json!({"model": "story", "messages": [{"role": "user", "content": "a"}], "stream": false, "keep_alive": "5m", "options": {"num_predict": 1}}),
        ),
        (
            "/api/generate",
            json!({"model": "story", "prompt": "a", "stream": false, "format": {"enum": [1]}, "options": {"num_predict": 1}}),
        ),
    ]
}

#[test]
fn bodies_of_any_bytes() {
    let server = serve();
    let mut rng = Rng::new(7);
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    for (path, good) in good() {
        let mut bodies: Vec<Vec<u8>> =
            vec![vec![], b"null".to_vec(), b"[]".to_vec(), b"\xff\xfe".to_vec(), deep.clone()];
        for _ in 0..80 {
            let mut bytes = good.to_string().into_bytes();
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                match rng.below(3) {
                    0 => bytes[at] = rng.below(256) as u8,
                    1 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, b"\"{}[]:,0"[rng.below(8) as usize]),
                }
            }
            bodies.push(bytes);
        }
        for body in &bodies {
            let answered = raw(server.address(), &request("POST", path, &[], body));
            assert!(
                matches!(answered.status, 200 | 400 | 404),
                "{path}: {} for {:?}",
                answered.status,
                String::from_utf8_lossy(body)
            );
        }
        if path != "/infill" {
            ok(server.address(), path, &good);
        }
    }
}

#[test]
fn methods_paths_and_types_of_content() {
    let server = serve();
    assert_eq!(get(server.address(), "/v1/nowhere").status, 404);
    let wrong = get(server.address(), "/v1/chat/completions");
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
    assert!(wrong.json()["error"]["message"].is_string());
    let xml = raw(server.address(), &request("POST", "/v1/completions", &[("content-type", "text/xml")], b"<a/>"));
    assert_eq!(xml.status, 415);
    assert!(raw(server.address(), b"NONSENSE\r\n\r\n").status == 400);
}

#[test]
fn too_much_is_refused() {
    let server = serve();
    let length = yirage_serve::MAX_BODY + 1;
    let head = format!("POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
    assert_eq!(raw(server.address(), head.as_bytes()).status, 413);
    // Without a length it is counted.
    let mut stream = connect(server.address());
    stream
        .write_all(b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    let chunk = [b"100000\r\n".to_vec(), vec![b' '; 0x10_0000], b"\r\n".to_vec()].concat();
    while stream.write_all(&chunk).is_ok() {}
    ok(server.address(), "/v1/completions", &json!({"model": "story", "prompt": "a", "max_tokens": 1}));
    let flood: String = (0..200).map(|i| format!("x-{i}: y\r\n")).collect();
    let flood = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{flood}\r\n");
    assert_eq!(raw(server.address(), flood.as_bytes()).status, 431);
    let long = format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let long = raw(server.address(), long.as_bytes());
    assert!(matches!(long.status, 400 | 431), "{} {}", long.status, long.text());
    assert_eq!(get(server.address(), "/health").status, 200);
}

#[test]
fn what_would_wait_too_long_is_told_when_to_come_again() {
    let engine = EngineOptions { max_seqs: 1, context: Some(512), ..support::engine_options() };
    let server = serve_with(ServeOptions { max_queued: 1, ..options() }, vec![support::story(engine)]);
    let long = json!({"model": "story", "prompt": "Once", "max_tokens": 500, "ignore_eos": true, "stream": true});
    let long = request("POST", "/v1/completions", &[], long.to_string().as_bytes());
    let started = std::time::Instant::now();
    loop {
        let mut open: Vec<_> = (0..2).map(|_| connect(server.address())).collect();
        for stream in &mut open {
            stream.write_all(&long).unwrap();
            // An answer that has begun was let in.
            assert_eq!(stream.peek(&mut [0]).unwrap(), 1);
        }
        let asked = post(server.address(), "/v1/completions", &json!({"model": "story", "prompt": "a", "n": 2}));
        for mut stream in open {
            let events = read(&mut stream);
            assert_eq!(events.status, 200, "{}", events.text());
        }
        if asked.status == 429 {
            assert!(asked.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
            assert!(asked.header("retry-after-ms").is_some());
            assert_eq!(asked.header("x-should-retry"), Some("true"));
            assert_eq!(asked.json()["error"]["type"], "rate_limit_error");
            break;
        }
        // Both had ended before the third was looked at.
        assert_eq!(asked.status, 200, "{}", asked.text());
        assert!(started.elapsed().as_secs() < 60, "never refused");
    }
}

#[test]
fn what_would_wait_behind_too_many_tokens_is_told_when_to_come_again() {
    let engine = EngineOptions { max_seqs: 1, context: Some(512), ..support::engine_options() };
    let server =
        serve_with(ServeOptions { max_queued_tokens: Some(10), ..options() }, vec![support::story(engine.clone())]);
    let address = server.address();
    let asked = |prompt: &str, new: u32| {
        let body = json!({"model": "story", "prompt": prompt, "max_tokens": new, "ignore_eos": true, "stream": true});
        request("POST", "/v1/completions", &[], body.to_string().as_bytes())
    };
    let waiting = || {
        let figures = get(address, "/metrics");
        let text = figures.text();
        let line = text.lines().find(|line| line.starts_with("yirage_waiting_prompt_tokens{")).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let started = std::time::Instant::now();
    loop {
        assert!(started.elapsed().as_secs() < 60, "never refused");
        let (mut runs, mut waits) = (connect(address), connect(address));
        runs.write_all(&asked("Once", 500)).unwrap();
        assert_eq!(runs.peek(&mut [0]).unwrap(), 1);
        // More than may wait, and nobody waits: it is let in.
        waits.write_all(&asked("Once upon a time there was a king who had a little garden", 1)).unwrap();
        while waiting() == 0 && !has_begun(&waits) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let refused = raw(address, &asked("a", 1));
        for mut open in [runs, waits] {
            assert_eq!(read(&mut open).status, 200);
        }
        if refused.status == 429 {
            assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
            assert!(refused.text().contains("10 may wait"), "{}", refused.text());
            break;
        }
        // The first had ended before the last was looked at.
        assert_eq!(refused.status, 200, "{}", refused.text());
    }
    assert_eq!(waiting(), 0);
}

/// Whether anything of an answer has come.
fn has_begun(stream: &std::net::TcpStream) -> bool {
    peeked(stream).is_ok()
}

/// Whether a connection is open and nothing has come.
fn is_silent(stream: &std::net::TcpStream) -> bool {
    peeked(stream).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
}

fn peeked(stream: &std::net::TcpStream) -> std::io::Result<usize> {
    stream.set_nonblocking(true).unwrap();
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    peeked
}

#[test]
fn bodies_have_room_together() {
    let little = ServeOptions { body_memory: 1 << 20, ..options() };
    let server = serve_with(little, vec![support::story(support::engine_options())]);
    let address = server.address();
    // A body that does not end holds what has come of it.
    let endless = || {
        let mut slow = connect(address);
        let head = b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 800000\r\n\r\n";
        // Refused in the middle, it cannot be written whole.
        let _ = slow.write_all(head).and_then(|()| slow.write_all(&vec![b' '; 700_000]));
        slow
    };
    let mut slow = endless();
    let large = format!("{}{}", " ".repeat(400_000), json!({"model": "story", "prompt": "a", "max_tokens": 1}));
    let post_large = || raw(address, &request("POST", "/v1/completions", &[], large.as_bytes()));
    let started = std::time::Instant::now();
    let refused = loop {
        let answered = post_large();
        if answered.status != 200 {
            break answered;
        }
        assert!(started.elapsed().as_secs() < 60, "never refused");
        // Where the two met, the endless one may be the one that found no room.
        if !is_silent(&slow) {
            slow = endless();
        }
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], "out_of_memory");
    // Small ones go on, and the room is given back.
    ok(address, "/v1/completions", &json!({"model": "story", "prompt": "a", "max_tokens": 1}));
    drop(slow);
    while post_large().status != 200 {
        assert!(started.elapsed().as_secs() < 60, "the room was not given back");
    }
}
