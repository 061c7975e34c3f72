//! `yirage serve`: its options, its end, and the examples of its page.

use crate::docs::{commands, fits, words};
use crate::support::{Ran, bedtime, yirage};
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// A server of the small model.
pub(crate) struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    pub(crate) fn new(more: &[&str]) -> Serving {
        let model = bedtime();
        Serving::listening(&[&["serve", &model, "--port", "0", "--json", "--threads", "2"], more].concat())
    }

    /// A command that listens and says where.
    pub(crate) fn listening(words: &[&str]) -> Serving {
        let run = yirage(words);
        let mut child = run.reading();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            let output = child.wait_with_output().unwrap();
            panic!("{}", String::from_utf8_lossy(&output.stderr));
        };
        let address = said["address"].as_str().unwrap().split_once("://").unwrap().1.to_owned();
        Serving { child, address }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Status and body of a request.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let (head, body) = self.asked(method, path, headers, body);
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
    }

    /// Head and body of a request.
    pub(crate) fn asked(&self, method: &str, path: &str, headers: &str, body: &str) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(self.request(method, path, headers, body).as_bytes()).unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        let (head, body) = all.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn connect(&self) -> TcpStream {
        let address = self.address.replace("0.0.0.0", "127.0.0.1");
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        stream
    }

    fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let host = if headers.contains("host:") { "" } else { "host: localhost\r\n" };
        let length = body.len();
        format!("{method} {path} HTTP/1.0\r\n{host}{headers}content-length: {length}\r\n\r\n{body}")
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, "", "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    pub(crate) fn status(&self, path: &str, headers: &str) -> u16 {
        self.ask("GET", path, headers, "").0
    }

    /// A stream that goes on for a while (long, where one answer is computed at a time), once its first bytes are there.
    pub(crate) fn long(&self) -> TcpStream {
        let body = json!({"prompt": "Once", "max_tokens": 500, "ignore_eos": true, "n": 16, "stream": true});
        self.streaming(&body.to_string())
    }

    /// A stream of completions, once its first bytes are there.
    pub(crate) fn streaming(&self, body: &str) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(self.request("POST", "/v1/completions", "", body).as_bytes()).unwrap();
        stream.read_exact(&mut [0; 200]).unwrap();
        stream
    }

    /// Ends it as an operator does.
    pub(crate) fn ended(self) -> Ran {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        self.has_ended()
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it ends by itself.
    pub(crate) fn has_ended(mut self) -> Ran {
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = self.child.wait().unwrap();
        let code = status.code().unwrap_or_else(|| panic!("{status}: {err}"));
        Ran { code, out: String::new(), err }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run that does not come to serve.
fn refused(more: &[&str]) -> Ran {
    let model = bedtime();
    yirage(&[&["serve", &model, "--port", "0"], more].concat()).ran()
}

pub(crate) fn host() {
    let open = refused(&["--host", "0.0.0.0"]);
    assert!(open.code == 2 && open.err.contains("--insecure"), "{}", open.err);
    assert_eq!(refused(&["--host", "no such host"]).code, 2);
    assert!(Serving::new(&["--host", "0.0.0.0", "--insecure"]).address.starts_with("0.0.0.0:"));
}

pub(crate) fn port() {
    let free = Serving::new(&[]).address.rsplit(':').next().unwrap().to_owned();
    assert!(Serving::new(&["--port", &free]).address.ends_with(&free));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = refused(&["--port", &port]);
    assert!(refused.code == 1 && refused.err.contains(&port), "{}", refused.err);
}

pub(crate) fn served_model_name() {
    let names = |more: &[&str]| {
        let list = Serving::new(more).get("/v1/models");
        list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&["--served-model-name", "a", "--served-model-name", "b/c"]), ["a", "b/c"]);
    assert_eq!(names(&[]).last().unwrap(), "bedtime-f32.gguf");
    let model = bedtime();
    let two = yirage(&["serve", &model, &model, "--port", "0", "--served-model-name", "a"]).ran();
    assert!(two.code == 2 && two.err.contains("NAME=MODEL"), "{}", two.err);
}

pub(crate) fn api_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    std::fs::write(&file, "ann secret\n").unwrap();
    let server = Serving::new(&["--api-key-file", file.to_str().unwrap()]);
    assert_eq!(server.status("/v1/models", ""), 401);
    assert_eq!(server.status("/v1/models", "authorization: Bearer secret\r\n"), 200);
    let ended = server.ended();
    assert!(ended.err.contains("plain text") && !ended.err.contains("secret"), "{}", ended.err);
    assert_eq!(refused(&["--api-key-file", "/no/such/file"]).code, 2);
}

/// A file beside this one.
fn pem(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/tls").join(name).to_str().unwrap().to_owned()
}

/// A client that trusts the test's certificate alone. The certificate is its own issuer and ends in a hundred years.
fn tls_client() -> rustls::ClientConnection {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_file(pem("cert.pem")).unwrap()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    rustls::ClientConnection::new(std::sync::Arc::new(config), "localhost".try_into().unwrap()).unwrap()
}

pub(crate) fn tls() {
    let server = Serving::new(&["--tls-cert", &pem("cert.pem"), "--tls-key", &pem("key.pem")]);
    let mut client = rustls::StreamOwned::new(tls_client(), server.connect());
    client.write_all(server.request("GET", "/health", "", "").as_bytes()).unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    assert!(all.starts_with("HTTP/1.0 200"), "{all}");
    // Plain HTTP gets no answer of HTTP there, and the server goes on.
    let mut plain = server.connect();
    plain.write_all(server.request("GET", "/health", "", "").as_bytes()).unwrap();
    let mut said = Vec::new();
    // It may be reset, with bytes unread.
    let _ = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    let mut again = rustls::StreamOwned::new(tls_client(), server.connect());
    again.write_all(server.request("GET", "/v1/models", "", "").as_bytes()).unwrap();
    again.read_exact(&mut [0; 12]).unwrap();
    assert!(again.conn.negotiated_cipher_suite().is_some());
    assert_eq!(server.ended().code, 0);
    let err = |more: &[&str]| {
        let ran = refused(more);
        assert_eq!(ran.code, 2, "{}", ran.err);
        ran.err
    };
    assert!(err(&["--tls-cert", &pem("cert.pem")]).contains("--tls-key is missing"));
    assert!(err(&["--tls-key", &pem("key.pem")]).contains("--tls-cert is missing"));
    assert!(err(&["--tls-cert", &pem("key.pem"), "--tls-key", &pem("key.pem")]).contains("BEGIN CERTIFICATE"));
    assert!(err(&["--tls-cert", &pem("cert.pem"), "--tls-key", &pem("cert.pem")]).contains("BEGIN PRIVATE KEY"));
    assert!(err(&["--tls-cert", "/no/such/file", "--tls-key", &pem("key.pem")]).contains("/no/such/file"));
}

pub(crate) fn insecure() {
    let server = Serving::new(&["--host", "0.0.0.0", "--insecure"]);
    assert_eq!(server.status("/v1/models", "host: any.example\r\n"), 200);
}

pub(crate) fn allowed_host() {
    let status = |more: &[&str]| Serving::new(more).status("/v1/models", "host: proxy.example\r\n");
    assert_eq!((status(&[]), status(&["--allowed-host", "proxy.example"])), (403, 200));
}

pub(crate) fn allowed_origin() {
    let status = |more: &[&str]| Serving::new(more).status("/v1/models", "origin: https://page.example\r\n");
    assert_eq!((status(&[]), status(&["--allowed-origin", "https://page.example"])), (403, 200));
}

pub(crate) fn max_seqs() {
    assert_eq!(Serving::new(&["--max-seqs", "3"]).get("/props")["total_slots"], 3);
}

pub(crate) fn max_queued() {
    let two = r#"{"prompt": "a", "n": 2, "max_tokens": 1}"#;
    let status = |queued| {
        let server = Serving::new(&["--max-seqs", "1", "--max-queued", queued]);
        server.ask("POST", "/v1/completions", "", two).0
    };
    assert_eq!((status("0"), status("1")), (429, 200));
}

pub(crate) fn max_queued_tokens() {
    // Whether one is refused while the prompt of another waits behind a long answer.
    let refused = |more: &[&str]| {
        let server = Serving::new(&[&["--max-seqs", "1"], more].concat());
        let ask = |prompt: &str| {
            let body = json!({"prompt": prompt, "max_tokens": 1}).to_string();
            server.ask("POST", "/v1/completions", "", &body).0
        };
        let open = server.long();
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..2).map(|_| scope.spawn(|| ask("Once upon a time"))).collect();
            let codes: Vec<u16> = asked.into_iter().map(|one| one.join().unwrap()).collect();
            drop(open);
            codes.contains(&429)
        })
    };
    // The long answer may have ended before either was looked at.
    assert!((0..20).any(|_| refused(&["--max-queued-tokens", "1"])) && !refused(&[]));
}

pub(crate) fn max_step_ms() {
    let said = |more: &[&str]| Serving::new(&[&["--log-level", "debug"], more].concat()).ended().err;
    assert!(said(&["--max-step-ms", "5"]).contains("max_step=Some(5ms)"));
    assert!(said(&[]).contains("max_step=None"));
}

pub(crate) fn kv_memory() {
    let small = refused(&["--kv-memory", "0.000001"]);
    assert!(small.code != 0 && small.err.contains("the cache may take 1073 bytes"), "{}", small.err);
}

pub(crate) fn models_memory() {
    let status = |more: &[&str]| Serving::new(more).get("/v1/models")["data"][0]["status"]["value"].clone();
    assert_eq!((status(&[]), status(&["--models-memory", "1"])), (json!("loaded"), json!("unloaded")));
}

pub(crate) fn idle_unload() {
    let server = Serving::new(&["--idle-unload", "0.3"]);
    let status = || server.get("/v1/models")["data"][0]["status"]["value"].clone();
    let began = std::time::Instant::now();
    while status() != "unloaded" {
        assert!(began.elapsed() < Duration::from_secs(600), "never unloaded");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.ask("POST", "/v1/completions", "", r#"{"prompt": "a", "max_tokens": 1}"#).0, 200);
}

/// A slot of one server goes on in another one.
pub(crate) fn slot_save_path() {
    let folder = tempfile::tempdir().unwrap();
    let words = "Once upon a time there was a little bear who lived in the deep forest with his mother and his father, and \
                 every day he went to the river to look at the fish and the birds and the stones.";
    let body =
        json!({"prompt": words, "n_predict": 12, "temperature": 0, "id_slot": 1, "return_tokens": true}).to_string();
    let start = || Serving::new(&["--slot-save-path", folder.path().to_str().unwrap()]);
    let ask = |server: &Serving, path: &str, body: &str| -> Value {
        let (status, text) = server.ask("POST", path, "", body);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    };
    let file = r#"{"filename": "bear.bin"}"#;
    let server = start();
    assert_eq!(server.ask("POST", "/slots/1?action=save", "", file).0, 400, "a slot that names nothing");
    let first = ask(&server, "/completion", &body);
    let saved = ask(&server, "/slots/1?action=save", file);
    assert!(saved["n_saved"].as_u64().unwrap() >= 32 && saved["n_written"].as_u64().unwrap() > 1000, "{saved}");
    assert_eq!(server.ask("POST", "/slots/1?action=save", "", r#"{"filename": "../bear.bin"}"#).0, 400);
    assert_eq!(server.ask("POST", "/slots/1?action=restore", "", r#"{"filename": "wolf.bin"}"#).0, 404);
    assert_eq!(server.ask("POST", "/slots/99?action=erase", "", "{}").0, 400);
    drop(server);
    let later = start();
    let restored = ask(&later, "/slots/0?action=restore", file);
    assert_eq!((&restored["n_restored"], &restored["n_read"]), (&saved["n_saved"], &saved["n_written"]));
    let again = ask(&later, "/completion", &body);
    assert_eq!((&again["tokens"], &again["tokens_cached"]), (&first["tokens"], &saved["n_saved"]));
    assert_eq!(ask(&later, "/slots/0?action=erase", "")["n_erased"], saved["n_saved"]);
    assert_eq!(ask(&later, "/slots/0?action=erase", "")["n_erased"], 0);
}

/// The answer of a server for which another one computes prompts, how many tokens came over, and how many prompts did not.
fn prefilled_by(prefilling: &Serving, more: &[&str]) -> (Value, [u64; 2]) {
    let words = "Once upon a time there was a little bear who lived in the deep forest with his mother and his father.";
    let address = format!("http://{}", prefilling.address());
    let server = Serving::new(&[&["--prefill-server", &address], more].concat());
    let body = json!({"prompt": words, "max_tokens": 8, "temperature": 0}).to_string();
    let (status, answer) = server.ask("POST", "/v1/completions", "", &body);
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let (_, figures) = server.ask("GET", "/metrics", "", "");
    let figure = |name: &str| {
        let line = figures.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
    };
    let counts = ["yirage_prefilled_elsewhere_tokens_total{", "yirage_prefills_elsewhere_failed_total{"].map(figure);
    (answer["choices"][0]["text"].clone(), counts)
}

pub(crate) fn prefill_server() {
    let prefilling = Serving::new(&[]);
    let (_, [tokens, failed]) = prefilled_by(&prefilling, &["--prefill-least", "16"]);
    assert!(tokens >= 16 && failed == 0, "{tokens} {failed}");
    let refused = refused(&["--prefill-server", "https://a:1"]);
    assert!(refused.code == 2 && refused.err.contains("--prefill-server: expected http://"), "{}", refused.err);
}

pub(crate) fn prefill_least() {
    let prefilling = Serving::new(&[]);
    let (text, [tokens, _]) = prefilled_by(&prefilling, &["--prefill-least", "16"]);
    assert!(tokens >= 16);
    assert_eq!(prefilled_by(&prefilling, &[]), (text, [0, 0]), "the prompt is shorter than 256 tokens");
    for wrong in ["0", "8"] {
        let refused = refused(&["--prefill-least", wrong]);
        assert!(refused.code == 2 && refused.err.contains("--prefill-least: "), "{wrong}: {}", refused.err);
    }
}

pub(crate) fn prefill_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let (keys, key) = (folder.path().join("keys"), folder.path().join("key"));
    std::fs::write(&keys, "ann secret\n").unwrap();
    std::fs::write(&key, "secret\n").unwrap();
    let prefilling = Serving::new(&["--api-key-file", keys.to_str().unwrap()]);
    let with_key = ["--prefill-key-file", key.to_str().unwrap()];
    let (text, [tokens, failed]) = prefilled_by(&prefilling, &[&with_key[..], &["--prefill-least", "16"]].concat());
    assert!(tokens >= 16 && failed == 0, "{tokens} {failed}");
    assert_eq!(prefilled_by(&prefilling, &["--prefill-least", "16"]), (text, [0, 1]), "it wants a key");
    let alone = refused(&with_key);
    assert!(
        alone.code == 2 && alone.err.contains("the server of --prefill-server, which is not given"),
        "{}",
        alone.err
    );
}

pub(crate) fn request_time() {
    let server = Serving::new(&["--request-time", "0"]);
    let (status, body) = server.ask("POST", "/v1/completions", "", r#"{"prompt": "a", "max_tokens": 300}"#);
    assert!(status == 503 && body.contains("timeout"), "{status} {body}");
}

pub(crate) fn drain_time() {
    let server = Serving::new(&["--drain-time", "0", "--max-seqs", "1"]);
    let _open = server.long();
    let ended = server.ended();
    assert!(ended.code == 0 && ended.err.contains("were cut off at the deadline"), "{}", ended.err);
}

pub(crate) fn stuck_after() {
    let stuck = |seconds| {
        let server = Serving::new(&["--stuck-after", seconds, "--max-seqs", "1"]);
        let _open = server.long();
        server.status("/health/progress", "")
    };
    assert_eq!((stuck("0"), stuck("60")), (503, 200));
}

#[test]
fn a_server_that_is_told_to_end_finishes_what_is_open() {
    let server = Serving::new(&["--drain-time", "600"]);
    let mut open = server.long();
    let ended = server.ended();
    assert_eq!(ended.code, 0, "{}", ended.err);
    let mut rest = String::new();
    open.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("data: [DONE]"), "the answer was cut");
}

/// What people write and what models say is nobody's who reads a log, be it the usual one or all of it, and whether the
/// request is answered or refused.
#[test]
fn texts_and_answers_never_reach_the_log() {
    let sent = "Xylograph quandary";
    for level in [&[][..], &["--log-level", "debug"]] {
        let server = Serving::new(level);
        let mut said = Vec::new();
        let messages = json!([{"role": "user", "content": sent}]);
        let schema = json!({"type": "object", "properties": {sent: {"const": sent}}, "required": [sent]});
        let stuck = json!({"type": "string", "pattern": "^Xylograph quandary$", "minLength": 90});
        for (path, body, place) in [
            ("/v1/chat/completions", json!({"messages": messages, "max_tokens": 24}), "/choices/0/message/content"),
            ("/v1/completions", json!({"prompt": sent, "max_tokens": 24}), "/choices/0/text"),
            ("/v1/responses", json!({"input": sent, "max_output_tokens": 24}), "/output_text"),
            ("/v1/messages", json!({"messages": messages, "max_tokens": 24}), "/content/0/text"),
            ("/completion", json!({"prompt": sent, "n_predict": 24}), "/content"),
            ("/api/generate", json!({"prompt": sent, "stream": false, "options": {"num_predict": 24}}), "/response"),
            ("/v1/completions", json!({"prompt": sent, "max_tokens": 90, "guided_json": schema}), ""),
            ("/v1/completions", json!({"prompt": sent, "max_tokens": 9, "guided_json": stuck}), ""),
            ("/v1/chat/completions", json!({"messages": [{"role": sent, "content": sent}]}), ""),
            ("/v1/chat/completions", json!({"messages": messages, "stream": true, "max_tokens": 4, sent: sent}), ""),
            ("/v1/completions", json!({"prompt": {"a": sent}}), ""),
            ("/tokenize", json!({"content": sent}), ""),
        ] {
            let (_, text) = server.ask("POST", path, "", &body.to_string());
            let answer: Value = serde_json::from_str(&text).unwrap_or_default();
            let answer = answer.pointer(place).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
            // A word may stand in any log; a line of an answer in none.
            said.extend((answer.len() > 12).then_some(answer));
        }
        server.ask("POST", "/v1/completions", "", &format!("{{\"prompt\": \"{sent}"));
        let log = server.ended().err;
        assert!(said.len() >= 3, "{said:?}");
        for text in said.iter().map(String::as_str).chain([sent, "Xylograph"]) {
            assert!(!log.contains(text), "{level:?}: {text:?} stands in {log}");
        }
    }
}

#[test]
fn examples_of_the_server_give_what_they_show() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/server.md");
    let page = std::fs::read_to_string(page).unwrap();
    let server = Serving::new(&["--served-model-name", "story", "--precision", "exact"]);
    let mut examples = 0;
    for (command, shown) in commands(&page).into_iter().filter(|(command, _)| command.starts_with("curl ")) {
        let words = words(&command);
        let path = words.iter().find_map(|word| word.strip_prefix("localhost:8080")).unwrap();
        let body = words.iter().position(|word| word == "-d").map(|at| words[at + 1].as_str());
        let (_, answer) = server.ask(if body.is_some() { "POST" } else { "GET" }, path, "", body.unwrap_or_default());
        let answer = if answer.ends_with('\n') { answer } else { format!("{answer}\n") };
        assert!(fits(&shown, &answer), "{command}\nshown:\n{shown}\nis:\n{answer}");
        examples += 1;
    }
    assert!(examples >= 8, "only {examples} examples were found");
}
