//! What lasts: responses in the background, models that nobody uses, clients that stand still; and texts to fill in.

use crate::support::{
    self, connect, device, engine_options, get, ok, options, post, raw, request, serve, serve_with, story,
};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use yirage_model::Checkpoint;
use yirage_serve::{Generator, ModelEntry, RunningServer, ServeOptions, Served};
use yirage_session::LoadedEngine;
use yirage_testkit::bedtime;

/// Waits for something that comes in a while.
fn comes(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: it never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn responses_are_computed_in_the_background() {
    let server = serve();
    let address = server.address();
    let mut body = json!({"model": "story", "input": "Hello", "max_output_tokens": 12, "temperature": 0});
    let waited_for = ok(address, "/v1/responses", &body);
    body["background"] = true.into();
    let begun = ok(address, "/v1/responses", &body);
    assert_eq!((&begun["status"], &begun["background"]), (&json!("in_progress"), &json!(true)));
    let path = format!("/v1/responses/{}", begun["id"].as_str().unwrap());
    comes("the response", || get(address, &path).json()["status"] != "in_progress");
    let ended = get(address, &path).json();
    assert_eq!((&ended["status"], &ended["usage"]["output_tokens"]), (&json!("incomplete"), &json!(12)));
    assert_eq!(ended["output"][0]["content"], waited_for["output"][0]["content"]);
    let next = json!({"model": "story", "input": "More", "previous_response_id": begun["id"], "max_output_tokens": 4});
    assert_eq!(post(address, "/v1/responses", &next).status, 200);
    // What has ended stays as it is.
    let cancelled = post(address, &format!("{path}/cancel"), &json!({}));
    assert_eq!((cancelled.status, &cancelled.json()["status"]), (200, &json!("incomplete")));
    let waited_for = format!("/v1/responses/{}/cancel", waited_for["id"].as_str().unwrap());
    assert_eq!(post(address, &waited_for, &json!({})).status, 400);
    for more in [json!({"stream": true}), json!({"store": false})] {
        let mut body = body.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(post(address, "/v1/responses", &body).json()["error"]["param"], "background");
    }
}

/// Requests that are open.
fn open(server: &RunningServer) -> u64 {
    get(server.address(), "/health/progress").json()["open"].as_u64().unwrap()
}

#[test]
fn background_responses_are_cancelled_and_forgotten() {
    let engine = yirage_engine::EngineOptions { max_seqs: 1, context: Some(2048), ..engine_options() };
    let server = serve_with(options(), vec![story(engine)]);
    let address = server.address();
    // Others stand in front of it, so that it is still computed when it is cancelled.
    let mut long = json!({"model": "story", "prompt": "Once", "max_tokens": 2000, "ignore_eos": true, "stream": true});
    long["n"] = 32.into();
    let mut before = connect(address);
    before.write_all(&request("POST", "/v1/completions", &[], long.to_string().as_bytes())).unwrap();
    before.read_exact(&mut [0; 100]).unwrap();
    let body = json!({"model": "story", "input": "Hello", "background": true});
    let begin = || {
        let id = ok(address, "/v1/responses", &body)["id"].as_str().unwrap().to_owned();
        (format!("/v1/responses/{id}"), id)
    };
    let (path, id) = begin();
    let unfinished = json!({"model": "story", "input": "More", "previous_response_id": id});
    assert_eq!(post(address, "/v1/responses", &unfinished).json()["error"]["param"], "previous_response_id");
    assert_eq!(post(address, &format!("{path}/cancel"), &json!({})).json()["status"], "cancelled");
    comes("the cancelled response", || get(address, &path).json()["status"] == "cancelled");
    let (path, _) = begin();
    assert_eq!(raw(address, &request("DELETE", &path, &[], b"")).status, 200);
    assert_eq!(get(address, &path).status, 404);
    drop(before);
    comes("an end of all", || open(&server) == 0);
}

#[test]
fn the_owner_of_the_process_is_told_once_when_nothing_is_open_any_more() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    let options = ServeOptions {
        when_idle: Some(|| {
            TOLD.fetch_add(1, Ordering::SeqCst);
        }),
        ..options()
    };
    let server = serve_with(options, vec![story(engine_options())]);
    let address = server.address();
    let text = json!({"model": "story", "prompt": "Once", "max_tokens": 2, "temperature": 0});
    for times in 1..=2 {
        // Questions about the server itself are none of its work.
        get(address, "/health");
        std::thread::sleep(Duration::from_millis(1700));
        assert_eq!(TOLD.load(Ordering::SeqCst), times - 1);
        ok(address, "/v1/completions", &text);
        comes("the word that it is idle", || TOLD.load(Ordering::SeqCst) == times);
    }
}

#[test]
fn models_that_nobody_uses_are_unloaded() {
    let idle = ServeOptions { idle_unload: Some(Duration::from_millis(300)), ..options() };
    let server = serve_with(idle, vec![story(engine_options())]);
    let address = server.address();
    let is = |word: &str| get(address, "/v1/models").json()["data"][0]["status"]["value"] == word;
    let text = json!({"model": "story", "prompt": "Once", "max_tokens": 2, "temperature": 0});
    let first = ok(address, "/v1/completions", &text);
    comes("unloading", || is("unloaded"));
    assert_eq!(ok(address, "/v1/completions", &text)["choices"], first["choices"]);
    // A client says how long it is to stay; until it is unloaded that holds.
    ok(address, "/api/generate", &json!({"model": "story", "keep_alive": "1h"}));
    std::thread::sleep(Duration::from_millis(800));
    assert!(is("loaded"));
    let chat = json!({"model": "story", "messages": [{"role": "user", "content": "Hello"}], "keep_alive": 0, "options": {"num_predict": 2}});
    assert_eq!(post(address, "/api/chat", &chat).header("x-yirage-ignored"), None);
    comes("unloading behind an answer", || is("unloaded"));
}

#[test]
fn a_model_in_use_is_not_unloaded() {
    let engine = yirage_engine::EngineOptions { max_seqs: 1, context: Some(512), ..engine_options() };
    let server = serve_with(options(), vec![story(engine)]);
    let address = server.address();
    let long =
        json!({"model": "story", "prompt": "Once", "max_tokens": 500, "ignore_eos": true, "n": 16, "stream": true});
    let unload = json!({"model": "story"});
    let began = Instant::now();
    loop {
        let mut open = connect(address);
        open.write_all(&request("POST", "/v1/completions", &[], long.to_string().as_bytes())).unwrap();
        open.read_exact(&mut [0; 16]).unwrap();
        let asked = post(address, "/models/unload", &unload);
        let mut rest = String::new();
        open.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("data: [DONE]"), "the answer was cut: {rest}");
        if asked.status == 409 {
            assert!(asked.text().contains("`story` is in use"), "{}", asked.text());
            break;
        }
        // The answer had ended before.
        assert_eq!(asked.status, 200, "{}", asked.text());
        assert!(began.elapsed() < Duration::from_secs(60), "never in use");
    }
    comes("unloading", || post(address, "/models/unload", &unload).status == 200);
}

#[test]
fn clients_that_stand_still_are_given_up() {
    let times = Duration::from_millis(300);
    let short = ServeOptions { head_time: times, body_time: times, ..options() };
    let server = serve_with(short, vec![story(engine_options())]);
    let address = server.address();
    // A head that never ends, and one that never begins.
    for sent in [&b"POST /v1/completions HTTP/1.1\r\nhost: loc"[..], b""] {
        let mut slow = connect(address);
        slow.write_all(sent).unwrap();
        let mut rest = Vec::new();
        slow.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
    }
    let head = b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n\r\n{\"prompt\"";
    let slow = raw(address, head);
    assert!(slow.status == 408 && slow.text().contains("0.3 s"), "{} {}", slow.status, slow.text());
    assert_eq!(get(address, "/health").status, 200);
}

#[test]
fn answers_that_nobody_reads_are_given_up() {
    let short = ServeOptions { stalled_time: Duration::from_millis(300), ..options() };
    let server = serve_with(short, vec![story(engine_options())]);
    let address = server.address();
    // One larger than all buffers between here and there.
    let body = json!({"content": "a b ".repeat(1 << 19), "with_pieces": true}).to_string();
    let mut reader = connect(address);
    reader.write_all(&request("POST", "/tokenize", &[], body.as_bytes())).unwrap();
    let mut all = vec![0; 1 << 10];
    let begun = reader.read(&mut all).unwrap();
    all.truncate(begun);
    std::thread::sleep(Duration::from_secs(3));
    // It breaks off, by an end or by an error.
    let _ = reader.read_to_end(&mut all);
    let head = String::from_utf8_lossy(&all[..begun]).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    assert!(all.len() < length.parse::<usize>().unwrap(), "all {} bytes came", all.len());
    assert_eq!(get(address, "/health").status, 200);
}

/// The small model with three of its tokens renamed: those between which a text is filled in.
fn filling() -> (ModelEntry, [u32; 3]) {
    let mut bytes = std::fs::read(bedtime::f32()).unwrap();
    let of = support::loaded(&engine_options());
    let tokenizer = &of.texts.as_ref().unwrap().tokenizer;
    let mut ids = Vec::new();
    for id in 3..512 {
        let Some(piece) = tokenizer.piece(id).filter(|piece| piece.len() == 5 && !piece.starts_with('<')) else {
            continue;
        };
        let stored = [&5u64.to_le_bytes(), piece.as_bytes()].concat();
        let places: Vec<usize> =
            bytes.windows(13).enumerate().filter(|(_, w)| *w == stored).map(|(at, _)| at).collect();
        let [place] = places[..] else { continue };
        let names: [&[u8; 5]; 3] = [b"<PRE>", b"<SUF>", b"<MID>"];
        bytes[place + 8..place + 13].copy_from_slice(names[ids.len()]);
        ids.push(id);
        if ids.len() == 3 {
            break;
        }
    }
    let file = tempfile::NamedTempFile::with_suffix(".gguf").unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let file = Arc::new(file);
    let open = move || {
        let checkpoint = Checkpoint::open(file.path()).unwrap();
        let loaded = LoadedEngine::load(&checkpoint, device(), &engine_options(), &mut |_, _| {}).unwrap();
        let generator = Generator::new(loaded.start().unwrap(), 4, None).unwrap();
        Ok(Served::Generator(Box::new(generator)))
    };
    (ModelEntry::new(vec!["filler".into()], 1 << 20, Box::new(open)), ids.try_into().unwrap())
}

#[test]
fn texts_are_filled_in() {
    let (filler, [before, behind, middle]) = filling();
    let server = serve_with(options(), vec![filler, story(engine_options())]);
    let address = server.address();
    let ids = |text: &str| {
        let body = json!({"model": "filler", "content": text, "add_special": false, "parse_special": false});
        ok(address, "/tokenize", &body)["tokens"].as_array().unwrap().clone()
    };
    let prompt = |begun: &str, extra: &[Value]| {
        let mut all = vec![json!(1)];
        all.extend_from_slice(extra);
        all.push(before.into());
        all.extend(ids("The cat sat"));
        all.push(behind.into());
        all.extend(ids(" and slept."));
        all.push(middle.into());
        all.extend(if begun.is_empty() { Vec::new() } else { ids(begun) });
        all
    };
    let text = |prompt: Vec<Value>| {
        let body = json!({"model": "filler", "prompt": prompt, "max_tokens": 12, "temperature": 0});
        ok(address, "/v1/completions", &body)["choices"][0]["text"].clone()
    };
    let mut body = json!({
        "model": "filler", "input_prefix": "The cat sat", "input_suffix": " and slept.", "n_predict": 12, "temperature": 0,
    });
    let filled = ok(address, "/infill", &body);
    assert_eq!(filled["content"], text(prompt("", &[])));
    assert_eq!(filled["tokens_evaluated"].as_u64().unwrap() as usize, prompt("", &[]).len());
    body["prompt"] = " on".into();
    assert_eq!(ok(address, "/infill", &body)["content"], text(prompt(" on", &[])));
    body["input_extra"] = json!([{"filename": "a.txt", "text": "A dog."}]);
    let extra = [ids("\n\n--- snippet ---\n\n"), ids("A dog.")].concat();
    assert_eq!(ok(address, "/infill", &body)["content"], text(prompt(" on", &extra)));
    // The other protocols' word for it.
    let suffix = json!({"model": "filler", "prompt": "The cat sat", "suffix": " and slept.", "max_tokens": 12, "temperature": 0});
    assert_eq!(ok(address, "/v1/completions", &suffix)["choices"][0]["text"], filled["content"]);
    let ollama = json!({"model": "filler", "prompt": "The cat sat", "suffix": " and slept.", "stream": false, "options": {"num_predict": 12, "temperature": 0}});
    assert_eq!(ok(address, "/api/generate", &ollama)["response"], filled["content"]);
    // A model that was not made for it says what it lacks.
    body["model"] = "story".into();
    let refused = post(address, "/infill", &body);
    assert!(refused.status == 400 && refused.text().contains("<|fim_prefix|>"), "{}", refused.text());
    let missing = post(address, "/infill", &json!({"model": "filler", "input_prefix": "a"}));
    assert_eq!((missing.status, &missing.json()["error"]["param"]), (400, &json!("input_suffix")));
}
