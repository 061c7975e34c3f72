//! `yirage route` before two servers of the small model.

use crate::serve::Serving;
use crate::support::yirage;
use serde_json::{Value, json};
use std::io::Read;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long something that happens within seconds may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A router before servers.
fn route(servers: &[&Serving], more: &[&str]) -> Serving {
    let addresses: Vec<String> = servers.iter().map(|server| format!("http://{}", server.address())).collect();
    let mut words = vec!["route", "--port", "0", "--json", "--health-time", "0.5"];
    words.extend(addresses.iter().map(String::as_str));
    Serving::listening(&[&words[..], more].concat())
}

/// Waits until the router says that so many servers take requests.
fn until_ready(router: &Serving, servers: usize) {
    let end = Instant::now() + PATIENCE;
    while figure(router, "replica_up") != servers as u64 {
        assert!(Instant::now() < end, "{}", router.ask("GET", "/health", "", "").1);
        sleep(Duration::from_millis(20));
    }
}

/// A figure, over all its labels.
fn figure(router: &Serving, name: &str) -> u64 {
    let text = router.ask("GET", "/metrics", "", "").1;
    assert!(text.contains(&format!("# TYPE yirage_route_{name}")) || name.contains('{'), "{text}");
    let lines = text.lines().filter(|line| line.starts_with(&format!("yirage_route_{name}")));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Asks for four tokens: the status, who answered, and the text.
fn ask(router: &Serving, prompt: &str) -> (u16, String, String) {
    let body = json!({"prompt": prompt, "max_tokens": 4, "temperature": 0}).to_string();
    let (head, body) = router.asked("POST", "/v1/completions", "content-type: application/json\r\n", &body);
    let by = head.lines().find_map(|line| line.strip_prefix("x-yirage-replica: ")).unwrap_or_default().to_owned();
    let answer: Value = serde_json::from_str(&body).unwrap();
    let text = answer["choices"][0]["text"].as_str().unwrap_or(&body).to_owned();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), by, text)
}

fn servers() -> [Serving; 2] {
    [0, 1].map(|_| Serving::new(&["--threads", "1"]))
}

const FIRST: &str = "Once upon a time there was a little girl who lived in a small house near the forest with her mother and \
                     her brother, and every day she went to the river";
const SECOND: &str = "Tom had a red ball and a blue ball, and he liked to play with both of them in the garden behind the house \
                      where his friend Lily lived with her cat";

#[test]
fn prompts_go_to_who_has_their_beginning_and_to_the_other_where_it_is_gone() {
    let [first, second] = servers();
    let router = route(&[&first, &second], &[]);
    until_ready(&router, 2);
    // A page elsewhere that points its name at this machine is refused by the server, as without the router.
    assert_eq!(router.status("/v1/models", "host: elsewhere.example\r\n"), 403);
    assert_eq!(router.status("/v1/models", ""), 200);
    let direct = ask(&first, FIRST).2;
    let (status, of_first, text) = ask(&router, FIRST);
    assert_eq!((status, &text), (200, &direct), "the answer is that of the server");
    let (_, of_second, _) = ask(&router, SECOND);
    assert_ne!(of_first, of_second, "of two that have nothing to do the one that was given less is taken");
    for more in ["", " and", " and swam", " with Max"] {
        assert_eq!(ask(&router, &format!("{FIRST}{more}")).1, of_first);
        assert_eq!(ask(&router, &format!("{SECOND}{more}")).1, of_second);
    }
    assert_eq!(figure(&router, "affinity_total{outcome=\"hit\"}"), 8);
    assert_eq!(figure(&router, "affinity_total{outcome=\"none\"}"), 2);
    assert_eq!((figure(&router, "retries_total"), figure(&router, "requests_open")), (0, 0));
    // One is gone: its prompts go to the other, and come to the same.
    let (gone, left) = if of_first == first.address() { (first, second) } else { (second, first) };
    drop(gone);
    let (status, by, text) = ask(&router, FIRST);
    assert_eq!((status, by.as_str(), &text), (200, left.address(), &direct));
    assert_eq!(ask(&router, FIRST).1, left.address());
    until_ready(&router, 1);
    assert_eq!(router.status("/health", ""), 200);
    drop(left);
    let (status, _, text) = ask(&router, FIRST);
    assert!(status == 503 && text.contains("no replica"), "{text}");
    let end = Instant::now() + PATIENCE;
    while router.status("/health", "") != 503 {
        assert!(Instant::now() < end);
        sleep(Duration::from_millis(20));
    }
    let ran = router.ended();
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn a_stream_that_has_begun_is_not_begun_again() {
    for signal in ["-KILL", "-STOP"] {
        let [first, second] = servers();
        let router = route(&[&first, &second], &[]);
        until_ready(&router, 2);
        let mut stream = router.long();
        let open = |of: &Serving| figure(&router, &format!("requests_open{{replica=\"{}\"}}", of.address()));
        let busy = if open(&first) == 1 { &first } else { &second };
        assert_eq!((open(busy), figure(&router, "requests_given_total")), (1, 1));
        let sent = std::process::Command::new("kill").args([signal, &busy.process().to_string()]).status().unwrap();
        assert!(sent.success());
        let mut rest = Vec::new();
        // It breaks off: nothing says that it is whole.
        let ended = stream.read_to_end(&mut rest);
        let rest = String::from_utf8_lossy(&rest);
        assert!(!rest.contains("[DONE]"), "{signal}: {ended:?} {rest}");
        until_ready(&router, 1);
        assert_eq!(figure(&router, "requests_given_total"), 1, "{signal}: nobody else was asked");
        assert_eq!((figure(&router, "answers_broken_total"), figure(&router, "requests_open")), (1, 0), "{signal}");
    }
}

pub(crate) fn health_time() {
    let refused = |more: &[&str]| yirage(&[&["route", "127.0.0.1:9", "--port", "0"], more].concat()).ran();
    let ran = refused(&["--health-time", "0"]);
    assert!(ran.code == 2 && ran.err.contains("--health-time: expected a number of seconds"), "{}", ran.err);
    let server = Serving::new(&["--threads", "1"]);
    let router = route(&[&server], &["--health-time", "0.1"]);
    until_ready(&router, 1);
    drop(server);
    until_ready(&router, 0);
}

/// Without slack a prompt whose server has anything to do goes to the other one.
pub(crate) fn affinity_slack() {
    let [first, second] = servers();
    for (slack, passed) in [("0", true), ("4", false)] {
        let router = route(&[&first, &second], &["--affinity-slack", slack]);
        until_ready(&router, 2);
        let owner = ask(&router, FIRST).1;
        let body = json!({"prompt": FIRST, "max_tokens": 300, "ignore_eos": true, "n": 8, "stream": true}).to_string();
        let stream = router.streaming(&body);
        assert_eq!(ask(&router, FIRST).1 != owner, passed, "{slack}");
        drop(stream);
    }
}

#[test]
fn what_is_no_server_is_refused() {
    let refused = |words: &[&str], said: &str| {
        let ran = yirage(&[&["route", "--port", "0"], words].concat()).ran();
        assert!(ran.code == 2 && ran.err.contains(said), "{} {}", ran.code, ran.err);
    };
    refused(&["https://localhost:1"], "a router speaks http to its servers");
    refused(&["localhost"], "a host and a port from 1 to 65535 are wanted");
    refused(&["localhost:1", "http://localhost:1"], "got 2, http://localhost:1 twice");
    refused(&[], "URL");
    refused(&["localhost:1", "--host", "0.0.0.0"], "a router checks no keys; give --insecure");
}
