//! Many streams at once, of every protocol: each says what its request says alone, and what is too much is told when to come
//! again. `YIRAGE_STREAMS` says how many.

use crate::support::{self, Answered, get, options, post, serve_with};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use yirage_engine::EngineOptions;
use yirage_serve::ServeOptions;

/// How many streams are open at once.
fn streams() -> usize {
    std::env::var("YIRAGE_STREAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(48)
}

/// The request of one stream: its path and body.
fn asked(at: usize) -> (&'static str, Value) {
    let (length, temperature) = (8 + at * 7 % 25, [0.0, 0.7, 1.3][at % 3]);
    let messages = json!([{"role": "user", "content": format!("Tell me of {at} kings and a 🐉")}]);
    let chat = json!({"model": "story", "stream": true, "messages": messages, "max_tokens": length, "seed": at,
        "temperature": temperature});
    match at % 5 {
        0 => {
            let prompt: Vec<usize> = (0..1 + at % 40).map(|i| 3 + (i * i + at) % 300).collect();
            let more = json!({"prompt": prompt, "ignore_eos": true, "max_tokens": length, "seed": at});
            ("/v1/completions", with(json!({"model": "story", "stream": true, "temperature": temperature}), &more))
        }
        1 => ("/v1/chat/completions", chat),
        2 => ("/v1/chat/completions", with(chat, &json!({"guided_regex": "[a-z é]{3,20}", "max_tokens": 60}))),
        3 => {
            let body =
                json!({"model": "story", "stream": true, "messages": messages, "max_tokens": length, "temperature": 0});
            ("/v1/messages", body)
        }
        _ => {
            let options = json!({"num_predict": length, "seed": at, "temperature": temperature});
            ("/api/chat", json!({"model": "story", "stream": true, "messages": messages, "options": options}))
        }
    }
}

fn with(mut base: Value, more: &Value) -> Value {
    base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    base
}

/// The text of a stream, and why it ended, which every protocol has to have said.
fn said(path: &str, answered: &Answered) -> (String, String) {
    assert_eq!(answered.status, 200, "{path}: {}", answered.text());
    let events: Vec<Value> = match path {
        "/api/chat" => answered.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        "/v1/messages" => {
            assert!(answered.text().contains("event: message_stop"), "{}", answered.text());
            let data = answered.text().lines().filter_map(|line| line.strip_prefix("data: "));
            data.map(|data| serde_json::from_str(data).unwrap()).collect()
        }
        _ => answered.events(),
    };
    let (mut text, mut end) = (String::new(), None);
    for event in &events {
        assert!(event["error"].is_null(), "{path}: {event}");
        let choice = &event["choices"][0];
        let pieces =
            [&choice["text"], &choice["delta"]["content"], &event["delta"]["text"], &event["message"]["content"]];
        text.extend(pieces.into_iter().filter_map(Value::as_str));
        let ends = [&choice["finish_reason"], &event["delta"]["stop_reason"], &event["done_reason"]];
        end = ends.into_iter().find_map(Value::as_str).map(str::to_owned).or(end);
    }
    (text, end.unwrap_or_else(|| panic!("{path}: no end: {}", answered.text())))
}

/// All of them at once; what each was answered.
fn at_once(address: SocketAddr, count: usize) -> Vec<Answered> {
    std::thread::scope(|scope| {
        let ask = |at| {
            let (path, body) = asked(at);
            scope.spawn(move || post(address, path, &body))
        };
        let open: Vec<_> = (0..count).map(ask).collect();
        open.into_iter().map(|stream| stream.join().unwrap()).collect()
    })
}

#[test]
fn streams_at_once_say_what_each_says_alone() {
    let engine = EngineOptions { max_seqs: 16, ..support::engine_options() };
    let count = streams();
    let server = serve_with(ServeOptions { max_queued: count, ..options() }, vec![support::story(engine)]);
    let address = server.address();
    let alone: Vec<_> = (0..count).map(asked).map(|(path, body)| said(path, &post(address, path, &body))).collect();
    for (at, answered) in at_once(address, count).iter().enumerate() {
        let (path, body) = asked(at);
        assert_eq!(said(path, answered), alone[at], "{path}: {body}");
    }
    assert_eq!(get(address, "/health/progress").json()["open"], 0);
}

/// Nobody is let in beyond the limit, nobody is cut, and who is refused is told the number and when to come again.
#[test]
fn streams_beyond_the_limit_are_told_the_number() {
    let engine = EngineOptions { max_seqs: 2, ..support::engine_options() };
    let count = streams();
    let server = serve_with(ServeOptions { max_queued: 6, ..options() }, vec![support::story(engine)]);
    let (address, began) = (server.address(), Instant::now());
    let alone: Vec<_> = (0..count).map(asked).map(|(path, body)| said(path, &post(address, path, &body))).collect();
    loop {
        let mut refused = 0;
        for (at, answered) in at_once(address, count).iter().enumerate() {
            let (path, _) = asked(at);
            if answered.status != 429 {
                assert_eq!(said(path, answered), alone[at], "{path}");
                continue;
            }
            refused += 1;
            assert!(answered.text().contains("8 are taken at once"), "{path}: {}", answered.text());
            assert!(answered.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
        }
        assert_eq!(get(address, "/health").status, 200);
        assert!(refused < count, "some were let in");
        if refused > 0 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "never refused");
    }
}
