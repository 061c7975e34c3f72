//! Keys, hosts, origins, health, figures, and the end of a server.

use crate::support::{self, connect, engine_options, get, ok, options, post, raw, request, serve, serve_with, story};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use yirage_serve::{ApiKeys, Generator, ModelEntry, ServeError, ServeOptions, Served, Server};

fn hello() -> serde_json::Value {
    json!({"model": "story", "prompt": "Once upon a time", "max_tokens": 4})
}

fn keys() -> ApiKeys {
    let mut keys = ApiKeys::default();
    keys.add("ann", "secret-a");
    keys.add("bob", "secret-b");
    keys
}

#[test]
fn keys_are_wanted_where_there_are_some() {
    let server = serve_with(ServeOptions { keys: keys(), ..options() }, vec![story(engine_options())]);
    let with = |name: &str, value: &str| {
        raw(server.address(), &request("POST", "/v1/completions", &[(name, value)], hello().to_string().as_bytes()))
    };
    assert_eq!(with("authorization", "Bearer secret-a").status, 200);
    assert_eq!(with("authorization", "bearer secret-b").status, 200);
    assert_eq!(with("x-api-key", "secret-b").status, 200);
    for (name, value) in [("authorization", "Bearer wrong"), ("authorization", "secret-a"), ("x", "y")] {
        let refused = with(name, value);
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (401, &json!("invalid_api_key")));
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        assert!(!refused.text().contains("secret"));
    }
    assert_eq!(get(server.address(), "/v1/models").status, 401);
    assert_eq!(get(server.address(), "/metrics").status, 401);
    assert_eq!(get(server.address(), "/health").status, 200);
}

#[test]
fn keys_do_not_share_cached_prompts() {
    let server = serve_with(ServeOptions { keys: keys(), ..options() }, vec![story(engine_options())]);
    let prompt: Vec<u32> = (0..70).map(|i| 3 + i * i % 200).collect();
    let body = json!({"model": "story", "prompt": prompt, "max_tokens": 1}).to_string();
    let cached = |key: &str| {
        let answered =
            raw(server.address(), &request("POST", "/v1/completions", &[("x-api-key", key)], body.as_bytes()));
        answered.json()["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    assert_eq!(cached("secret-a"), 0);
    assert!(cached("secret-a") > 0);
    assert_eq!(cached("secret-b"), 0);
}

#[test]
fn other_machines_are_listened_to_with_a_key_alone() {
    let open = ServeOptions { address: SocketAddr::from((IpAddr::from([0, 0, 0, 0]), 0)), ..options() };
    let refused = Server::bind(open.clone(), vec![story(engine_options())]).err().unwrap();
    assert!(matches!(refused, ServeError::Open { .. }) && refused.to_string().contains("--insecure"), "{refused}");
    assert!(Server::bind(ServeOptions { insecure: true, ..open.clone() }, vec![story(engine_options())]).is_ok());
    assert!(Server::bind(ServeOptions { keys: keys(), ..open }, vec![story(engine_options())]).is_ok());
    let twice = Server::bind(options(), vec![story(engine_options()), story(engine_options())]);
    assert!(matches!(twice.err().unwrap(), ServeError::Name { name } if name == "story"));
    assert!(matches!(Server::bind(options(), Vec::new()).err().unwrap(), ServeError::NoModel));
}

#[test]
fn hosts_and_origins_are_checked() {
    let allowed = ServeOptions {
        allowed_hosts: vec!["proxy.example".into()],
        allowed_origins: vec!["https://page.example".into()],
        ..options()
    };
    let server = serve_with(allowed, vec![story(engine_options())]);
    let status = |headers: &[(&str, &str)]| raw(server.address(), &request("GET", "/v1/models", headers, b"")).status;
    assert_eq!(status(&[("host", "evil.example")]), 403);
    assert_eq!(status(&[("host", "localhost.evil.example:80")]), 403);
    for host in ["localhost:8080", "127.0.0.1", "[::1]:9", "proxy.example:80"] {
        assert_eq!(status(&[("host", host)]), 200, "{host}");
    }
    assert_eq!(status(&[("origin", "https://evil.example")]), 403);
    assert_eq!(status(&[("origin", "null")]), 403);
    assert_eq!(status(&[("host", "localhost:1"), ("origin", "http://localhost:1")]), 200);
    let page = raw(server.address(), &request("GET", "/v1/models", &[("origin", "https://page.example")], b""));
    assert_eq!((page.status, page.header("access-control-allow-origin")), (200, Some("https://page.example")));
    let asked = raw(server.address(), &request("OPTIONS", "/v1/models", &[("origin", "https://page.example")], b""));
    assert_eq!((asked.status, asked.header("access-control-allow-methods").is_some()), (204, true));
}

#[test]
fn requests_have_ids() {
    let server = serve();
    let id = |headers: &[(&str, &str)]| {
        let answered = raw(server.address(), &request("GET", "/v1/models", headers, b""));
        answered.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(id(&[("x-request-id", "mine-7")]), "mine-7");
    assert_eq!(
        id(&[("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]),
        "0af7651916cd43dd8448eb211c80319c"
    );
    assert_ne!(id(&[]), id(&[]));
    assert_ne!(id(&[("x-request-id", &"x".repeat(500))]), "x".repeat(500));
}

#[test]
fn metrics_count_what_happened() {
    let server = serve();
    for _ in 0..3 {
        ok(
            server.address(),
            "/v1/completions",
            &json!({"model": "story", "prompt": [1, 5, 9], "max_tokens": 4, "ignore_eos": true}),
        );
    }
    let answered = get(server.address(), "/metrics");
    assert!(answered.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let text = answered.text().to_owned();
    for line in [
        "vllm:prompt_tokens_total{model_name=\"story\"} 9",
        "vllm:generation_tokens_total{model_name=\"story\"} 12",
        "vllm:request_success_total{model_name=\"story\",finished_reason=\"length\"} 3",
        "vllm:time_to_first_token_seconds_count{model_name=\"story\"} 3",
        "vllm:request_queue_time_seconds_count{model_name=\"story\"} 3",
        "vllm:request_prefill_time_seconds_count{model_name=\"story\"} 3",
        "vllm:inter_token_latency_seconds_count{model_name=\"story\"} 9",
        "vllm:e2e_request_latency_seconds_bucket{model_name=\"story\",le=\"+Inf\"} 3",
        "vllm:num_requests_running{model_name=\"story\"} 0",
        "vllm:num_requests_waiting{model_name=\"story\"} 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
    // Each line is a comment or a name with a number.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.rsplit_once(' ').unwrap().1.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn health() {
    let server = serve_with(ServeOptions { stuck_after: Duration::ZERO, ..options() }, vec![story(engine_options())]);
    for path in ["/health", "/v1/health", "/health/live", "/health/ready", "/ping"] {
        assert_eq!(get(server.address(), path).json(), json!({"status": "ok"}), "{path}");
    }
    assert_eq!(get(server.address(), "/health/progress").json()["open"], 0);
    // Any silence is too long for this server.
    let mut stream = connect(server.address());
    let long = json!({"model": "story", "prompt": "Once", "max_tokens": 200, "ignore_eos": true, "stream": true});
    stream
        .write_all(&request("POST", "/v1/completions", &[("x-request-id", "slow-one")], long.to_string().as_bytes()))
        .unwrap();
    stream.read_exact(&mut [0; 64]).unwrap();
    let stuck = get(server.address(), "/health/progress");
    if stuck.status == 503 {
        assert!(stuck.text().contains("slow-one"), "{}", stuck.text());
    } else {
        // It has ended by now.
        assert_eq!(stuck.json()["open"], 0);
    }
}

/// The requests that are open, as the figures say.
fn open(address: SocketAddr) -> u64 {
    let text = get(address, "/metrics").text().to_owned();
    text.lines().find_map(|line| line.strip_prefix("yirage_open_requests ")).unwrap().parse().unwrap()
}

#[test]
fn a_client_that_goes_away_ends_its_answer() {
    let engine = yirage_engine::EngineOptions { context: Some(512), ..engine_options() };
    let server = serve_with(options(), vec![story(engine)]);
    for stream in [true, false] {
        let body = json!({"model": "story", "prompt": "Once", "max_tokens": 500, "ignore_eos": true, "n": 4, "stream": stream});
        let mut connections: Vec<_> = (0..8).map(|_| connect(server.address())).collect();
        for connection in &mut connections {
            connection.write_all(&request("POST", "/v1/completions", &[], body.to_string().as_bytes())).unwrap();
        }
        if stream {
            connections[0].read_exact(&mut [0; 32]).unwrap();
        }
        drop(connections);
        let since = Instant::now();
        while open(server.address()) > 0 {
            assert!(since.elapsed() < Duration::from_secs(30), "answers go on without a reader");
        }
    }
    assert!(get(server.address(), "/metrics").text().contains("finished_reason=\"abort\""));
    ok(server.address(), "/v1/completions", &hello());
}

#[test]
fn a_server_ends_when_what_is_open_has_ended() {
    let engine = yirage_engine::EngineOptions { context: Some(512), ..engine_options() };
    let server = serve_with(options(), vec![story(engine)]);
    let address = server.address();
    let body = json!({"model": "story", "prompt": "Once", "max_tokens": 400, "ignore_eos": true, "stream": true});
    let mut connection = connect(address);
    connection.write_all(&request("POST", "/v1/completions", &[], body.to_string().as_bytes())).unwrap();
    let mut first = [0; 16];
    connection.read_exact(&mut first).unwrap();
    let ending = std::thread::spawn(move || server.stop().unwrap());
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).unwrap();
    let text = String::from_utf8_lossy(&rest).into_owned();
    assert!(text.contains("data: [DONE]"), "the answer was cut: {text}");
    assert_eq!(ending.join().unwrap().cut, 0);
    assert!(std::net::TcpStream::connect(address).is_err(), "it still listens");
}

#[test]
fn what_is_open_at_the_deadline_is_cut_off() {
    let engine = yirage_engine::EngineOptions { context: Some(512), max_seqs: 1, ..engine_options() };
    let server = serve_with(ServeOptions { drain_time: Duration::ZERO, ..options() }, vec![story(engine)]);
    let body =
        json!({"model": "story", "prompt": "Once", "max_tokens": 500, "ignore_eos": true, "n": 16, "stream": true});
    let mut connection = connect(server.address());
    connection.write_all(&request("POST", "/v1/completions", &[], body.to_string().as_bytes())).unwrap();
    connection.read_exact(&mut [0; 16]).unwrap();
    assert_eq!(server.stop().unwrap().cut, 1);
}

#[test]
fn streams_beside_each_other_are_those_of_each_alone() {
    let server = serve();
    let body =
        |i: u64| json!({"model": "story", "prompt": format!("Once upon a time {i}"), "max_tokens": 30, "seed": i});
    let text = |i| ok(server.address(), "/v1/completions", &body(i))["choices"][0]["text"].clone();
    let alone: Vec<_> = (0..12).map(text).collect();
    std::thread::scope(|scope| {
        for (i, wanted) in alone.iter().enumerate() {
            let address = server.address();
            scope.spawn(move || {
                for stream in [false, true, false] {
                    let mut body = body(i as u64);
                    body["stream"] = stream.into();
                    let text = if stream {
                        let events = post(address, "/v1/completions", &body).events();
                        let pieces = events.iter().filter_map(|event| event["choices"][0]["text"].as_str());
                        pieces.collect::<String>().into()
                    } else {
                        ok(address, "/v1/completions", &body)["choices"][0]["text"].clone()
                    };
                    assert_eq!(&text, wanted);
                }
            });
        }
    });
}

#[test]
fn every_documented_path_is_there() {
    let server = serve();
    let document = get(server.address(), "/openapi.json").json();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let asked = path.replace("{id}", "story");
            let answered = raw(server.address(), &request(&method.to_uppercase(), &asked, &[], b"{}"));
            // There is no response of this name, which says more than that there is nothing at the path.
            let there = answered.status != 404 || answered.text().contains("no response `story`");
            assert!(there && !matches!(answered.status, 405 | 500..), "{method} {path}: {}", answered.text());
            assert!(operation["responses"][answered.status.to_string()].is_object(), "{method} {path}: {answered:?}");
        }
    }
}

#[test]
fn an_engine_that_dies_makes_the_server_unready() {
    let dying = ModelEntry::new(
        vec!["story".into()],
        1 << 20,
        Box::new(|| {
            let model = support::loaded(&engine_options()).start().unwrap();
            assert!(model.between_steps(|_| -> () { panic!("ordered to") }).is_err());
            Ok(Served::Generator(Box::new(Generator::new(model, 4, None).unwrap())))
        }),
    );
    let server = serve_with(options(), vec![dying]);
    let refused = post(server.address(), "/v1/completions", &hello());
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!("engine_dead")), "{}", refused.text());
    let unready = get(server.address(), "/health");
    assert!(unready.status == 503 && unready.text().contains("ordered to"), "{}", unready.text());
    assert_eq!(get(server.address(), "/health/live").status, 200);
}

/// A file of the repository.
fn repository(path: &str) -> String {
    std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// Words of a text that are names of figures, ours or vLLM's.
fn metric_names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    let is = |word: &&str| word.starts_with("vllm:") || word.starts_with("yirage_") || word.starts_with("yirage:");
    words.filter(is).map(str::to_owned).collect()
}

/// What is deployed beside the server reads what the server says, or what a rule makes of that.
#[test]
fn dashboard_and_rules_name_metrics_that_there_are() {
    let server = serve();
    ok(server.address(), "/v1/completions", &json!({"model": "story", "prompt": "a", "max_tokens": 2}));
    let said = get(server.address(), "/metrics");
    let samples = said.text().lines().filter(|line| !line.starts_with('#'));
    let mut known: BTreeSet<String> = samples.flat_map(metric_names).collect();
    let rules = repository("deploy/prometheus/rules.yml");
    let recorded = rules.lines().filter_map(|line| line.trim().strip_prefix("- record: "));
    known.extend(recorded.map(str::to_owned));
    let dashboard: Value = serde_json::from_str(&repository("deploy/grafana/dashboards/yirage.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut asked: BTreeSet<String> =
        targets.flat_map(|target| metric_names(target["expr"].as_str().unwrap())).collect();
    asked.extend(metric_names(&rules));
    asked.extend(metric_names(&dashboard["templating"].to_string()));
    // What the page shows of the engine. A histogram is asked for by the name that its samples begin with.
    let page = repository("crates/yirage-serve/page/engine.js");
    let whole = |name: String| if known.contains(&format!("{name}_count")) { format!("{name}_count") } else { name };
    asked.extend(metric_names(&page).into_iter().map(whole));
    let unknown: Vec<&String> = asked.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?} of {known:?}");
    assert!(asked.len() > 15, "{asked:?}");
}

#[test]
fn the_page_and_its_files_need_no_key_and_run_nothing_inline() {
    let server = serve_with(ServeOptions { keys: keys(), ..options() }, vec![story(engine_options())]);
    let page = get(server.address(), "/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let html = page.text();
    for inline in ["<style", " style=", " onclick=", " onload=", "javascript:"] {
        assert!(!html.contains(inline), "{inline}");
    }
    assert_eq!(html.matches("<script").count(), html.matches("<script type=\"module\" src=\"/page/").count());
    // All that the page and its modules name is there, and no module writes markup.
    let mut open = vec![html.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(text) = open.pop() {
        let of = |mark: &str| {
            let parts = text.split(mark).skip(1).filter_map(|rest| rest.split('"').next());
            parts.map(str::to_owned).collect::<Vec<_>>()
        };
        for name in [of("\"/page/"), of("from \"./")].concat() {
            if seen.insert(name.clone()) {
                let file = get(server.address(), &format!("/page/{name}"));
                assert_eq!(file.status, 200, "{name}");
                assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
                for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                    assert!(!file.text().contains(sink), "{name}: {sink}");
                }
                open.push(file.text().to_owned());
            }
        }
    }
    assert_eq!(seen.len(), 10, "{seen:?}");
    assert_eq!(get(server.address(), "/page/nothing.js").status, 401);
    assert_eq!(get(server.address(), "/v1/models").status, 401);
}
