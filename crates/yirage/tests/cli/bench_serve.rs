//! `yirage bench-serve`: its options, each by what it changes, against a server that answers as it is told and keeps what it
//! was asked; and against `yirage serve`. No test looks at a time but at those the server itself takes.

use crate::serve::Serving;
use crate::support::{Ran, Run, yirage};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A request as it came.
struct Asked {
    path: String,
    head: String,
    body: Value,
    at: Instant,
}

/// A server that says what it is told to. It ends with the process that runs the tests.
struct Told {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    most_open: Arc<AtomicUsize>,
}

/// How long each answer takes, so that several are open at once.
const TAKES: Duration = Duration::from_millis(30);

impl Told {
    /// One whose models, tokens and answers are these: three texts, five tokens by its own count.
    fn new() -> Told {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (asked, most_open) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::<AtomicUsize>::default());
        let told = Told { address, asked: asked.clone(), most_open: most_open.clone() };
        std::thread::spawn(move || {
            let open = Arc::<AtomicUsize>::default();
            for stream in listener.incoming() {
                let (asked, most_open, open) = (asked.clone(), most_open.clone(), open.clone());
                std::thread::spawn(move || answer(stream.unwrap(), &asked, &open, &most_open));
            }
        });
        told
    }

    fn run(&self, more: &[&str]) -> Run {
        let port = self.address.rsplit(':').next().unwrap();
        let few = ["--num-prompts", "3", "--random-input-len", "4", "--random-output-len", "6"];
        yirage(&[&["bench-serve", "--port", port], &few[..], more].concat())
    }

    /// A run's result; what had been asked before is forgotten.
    fn result(&self, more: &[&str]) -> Value {
        self.asked.lock().unwrap().clear();
        self.run(&[more, &["--json"]].concat()).json()
    }

    /// Standard error of a run that is refused.
    fn refused(&self, more: &[&str]) -> String {
        let Ran { code, err, .. } = self.run(more).ran();
        assert_eq!(code, 2, "{more:?}: {err}");
        err
    }

    /// Bodies of the requests for answers, in the order in which they came.
    fn bodies(&self) -> Vec<Value> {
        self.answers(|asked| asked.body.clone())
    }

    fn answers<T>(&self, of: impl Fn(&Asked) -> T) -> Vec<T> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|asked| asked.body["stream"] == true).map(of).collect()
    }
}

fn answer(stream: TcpStream, asked: &Mutex<Vec<Asked>>, open: &AtomicUsize, most_open: &AtomicUsize) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return;
        }
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let streams = body["stream"] == true;
    let chat = path.contains("chat");
    asked.lock().unwrap().push(Asked { path: path.clone(), head, body: body.clone(), at: Instant::now() });
    let mut stream = stream;
    let mut say = |text: &str| stream.write_all(text.as_bytes()).unwrap();
    if !streams {
        let (status, text) = match path.as_str() {
            "/v1/models" => ("200 OK", json!({"data": [{"id": "org/first"}, {"id": "second"}]})),
            "/tokenize" => ("200 OK", json!({"tokens": [11, 12, 13, 14, 15, 16, 17, 18]})),
            "/detokenize" => ("200 OK", json!({"prompt": "eleven twelve"})),
            _ => ("404 Not Found", json!({"error": {"message": "there is no such thing"}})),
        };
        let text = text.to_string();
        return say(&format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len()));
    }
    most_open.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    for text in ["a", "b", "c"] {
        std::thread::sleep(TAKES / 3);
        let choice = if chat { json!({"delta": {"content": text}}) } else { json!({"text": text}) };
        say(&format!("data: {}\n\n", json!({"choices": [choice]})));
    }
    open.fetch_sub(1, Ordering::SeqCst);
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}});
    say(&format!("data: {usage}\n\ndata: [DONE]\n\n"));
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Every option of the command alone, and what it shares with others.
pub(crate) fn interface() {
    let told = Told::new();
    told.result(&["--backend", "openai-chat"]);
    assert!(told.bodies().iter().all(|body| body["messages"][0]["content"] == "eleven twelve"));
    assert_eq!(told.answers(|asked| asked.path.clone()), ["/v1/chat/completions"; 3]);
    let result = told.result(&["--endpoint-type", "openai"]);
    assert_eq!(told.answers(|asked| asked.path.clone()), ["/v1/completions"; 3]);
    // The server's own counts.
    assert_eq!((&result["total_input_tokens"], &result["total_output_tokens"]), (&json!(27), &json!(15)));
    assert_eq!((&result["completed"], &result["failed"]), (&json!(3), &json!(0)));
}

pub(crate) fn base_url() {
    let told = Told::new();
    let url = format!("http://{}/under", told.address);
    let ran = told.run(&["--base-url", &url, "--model", "m", "--port", "1"]).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(told.answers(|asked| asked.path.clone()), ["/under/v1/completions"; 3]);
    assert!(told.refused(&["--base-url", "https://a.example"]).contains("plain http"));
}

pub(crate) fn endpoint() {
    let told = Told::new();
    told.result(&["--endpoint", "/other/path"]);
    assert_eq!(told.answers(|asked| asked.path.clone()), ["/other/path"; 3]);
}

pub(crate) fn model() {
    let told = Told::new();
    assert_eq!(told.result(&[])["model_id"], "org/first");
    assert_eq!(told.result(&["--model", "second"])["model_id"], "second");
    assert!(told.bodies().iter().all(|body| body["model"] == "second"));
}

pub(crate) fn header() {
    let told = Told::new();
    told.result(&["--header", "x-tenant=blue", "--header", "x-other=a=b"]);
    assert!(told.answers(|asked| asked.head.to_lowercase()).iter().all(|h| h.contains("x-tenant: blue\r\n")));
    assert!(told.answers(|asked| asked.head.to_lowercase()).iter().all(|h| h.contains("x-other: a=b\r\n")));
    assert!(told.refused(&["--header", "nothing"]).contains("NAME=VALUE"));
}

pub(crate) fn key_file() {
    let told = Told::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "secret\n").unwrap();
    told.result(&["--key-file", file.to_str().unwrap()]);
    let heads = || told.answers(|asked| asked.head.clone());
    assert!(heads().iter().all(|head| head.contains("authorization: Bearer secret\r\n")));
    told.asked.lock().unwrap().clear();
    let ran = told.run(&[]).env("OPENAI_API_KEY", "other").ran();
    assert!(ran.err.contains("OPENAI_API_KEY") && !ran.err.contains("other"), "{}", ran.err);
    assert!(heads().iter().all(|head| head.contains("authorization: Bearer other\r\n")));
}

pub(crate) fn extra_body() {
    let told = Told::new();
    told.result(&["--extra-body", r#"{"top_k": 3, "temperature": 1}"#]);
    assert!(told.bodies().iter().all(|body| body["top_k"] == 3 && body["temperature"] == 1));
    told.result(&[]);
    assert!(told.bodies().iter().all(|body| body["top_k"].is_null() && body["temperature"] == 0.0));
}

pub(crate) fn ignore_eos() {
    let told = Told::new();
    told.result(&["--ignore-eos"]);
    assert!(told.bodies().iter().all(|body| body["ignore_eos"] == true));
}

pub(crate) fn seed() {
    let told = Told::new();
    let prompts = |seed| {
        told.result(&["--seed", seed, "--max-concurrency", "1"]);
        told.bodies().iter().map(|body| body["prompt"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(prompts("1"), prompts("1"));
    assert_ne!(prompts("1"), prompts("2"));
}

/// `--dataset-name`, `--dataset-path`, `--custom-output-len`.
pub(crate) fn dataset() {
    let told = Told::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prompts.jsonl");
    std::fs::write(&file, "{\"prompt\": \"one\", \"output_tokens\": 7}\n\n{\"prompt\": \"two\"}\n").unwrap();
    let path = file.to_str().unwrap();
    let asked = |more: &[&str]| {
        let custom = ["--dataset-name", "custom", "--dataset-path", path, "--max-concurrency", "1"];
        told.result(&[&custom, more].concat());
        told.bodies().iter().map(|b| (b["prompt"].clone(), b["max_tokens"].clone())).collect::<Vec<_>>()
    };
    let (one, two) = (json!("one"), json!("two"));
    let own = asked(&[]);
    assert_eq!(own, [(one.clone(), json!(7)), (two.clone(), json!(256)), (one.clone(), json!(7))]);
    let given = asked(&["--custom-output-len", "9"]);
    assert_eq!(given, [(one.clone(), json!(9)), (two, json!(9)), (one, json!(9))]);
    assert!(told.refused(&["--dataset-name", "custom"]).contains("--dataset-path"));
    assert!(told.refused(&["--dataset-path", path]).contains("--dataset-name custom"));
    std::fs::write(&file, "{\"text\": \"one\"}\n").unwrap();
    let ran = told.run(&["--dataset-name", "custom", "--dataset-path", path]).ran();
    assert!(ran.code == 1 && ran.err.contains("line 1"), "{}", ran.err);
}

/// `--num-prompts`, `--num-warmups`.
pub(crate) fn counts() {
    let told = Told::new();
    assert_eq!(told.result(&["--num-prompts", "5"])["completed"], 5);
    assert_eq!(told.bodies().len(), 5);
    assert_eq!(told.result(&["--num-warmups", "2"])["completed"], 3);
    assert_eq!(told.bodies().len(), 5);
}

/// Lengths of random prompts and answers, and their range.
pub(crate) fn lengths() {
    let told = Told::new();
    let asked = |more: &[&str]| {
        told.result(&[&["--num-prompts", "12", "--max-concurrency", "12"], more].concat());
        let ids = |body: &Value| body["prompt"].as_array().unwrap().clone();
        told.bodies().iter().map(|body| (ids(body), body["max_tokens"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    let plain = asked(&["--random-input-len", "30", "--random-output-len", "8"]);
    assert!(plain.iter().all(|(ids, output)| ids.len() == 30 && *output == 8));
    assert!(plain.iter().any(|(ids, _)| *ids != plain[0].0), "prompts differ");
    let shared = asked(&["--random-prefix-len", "5"]);
    assert!(shared.iter().all(|(ids, _)| ids.len() == 9 && ids[..5] == shared[0].0[..5]));
    let varied = asked(&["--random-input-len", "30", "--random-output-len", "8", "--random-range-ratio", "0.5"]);
    assert!(varied.iter().all(|(ids, output)| (15..=45).contains(&ids.len()) && (4..=12).contains(output)));
    assert!(varied.iter().any(|(ids, _)| ids.len() != varied[0].0.len()));
}

pub(crate) fn request_rate() {
    let told = Told::new();
    let ran = told.run(&["--request-rate", "20,inf", "--json"]).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    let rates: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["request_rate"].clone()).collect();
    assert_eq!(rates, [json!(20.0), json!("inf")]);
    // Three requests at 20 a second: the last is sent after 150 ms, whatever the machine does besides.
    let times = told.answers(|asked| asked.at);
    let began = told.asked.lock().unwrap()[0].at;
    assert!(times[2] - began >= Duration::from_millis(150), "{:?}", times[2] - began);
}

pub(crate) fn burstiness() {
    let told = Told::new();
    let first = |shape| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let save = ["--save-detailed", "--save-result", "--result-dir", path, "--result-filename", "r"];
        let load = ["--num-prompts", "2", "--request-rate", "5", "--seed", "0", "--burstiness", shape];
        told.result(&[&load[..], &save[..]].concat());
        let text = std::fs::read_to_string(folder.path().join("r")).unwrap();
        let saved: Value = serde_json::from_str(&text).unwrap();
        number(&saved["start_times"][0])
    };
    // Two requests in 0.4 s: each after half of that, or both at its end, since one gap is next to nothing.
    assert!(first("100000") >= 0.19 && first("0.001") >= 0.39);
    told.refused(&["--burstiness", "0"]);
}

pub(crate) fn max_concurrency() {
    let told = Told::new();
    told.result(&["--max-concurrency", "1", "--num-prompts", "6"]);
    assert_eq!(told.most_open.load(Ordering::SeqCst), 1);
    told.result(&["--num-prompts", "6"]);
    assert!(told.most_open.load(Ordering::SeqCst) > 1);
    let ran = told.run(&["--max-concurrency", "1,2", "--max-concurrency", "3", "--json"]).ran();
    assert_eq!(ran.out.lines().count(), 3, "{}", ran.err);
}

pub(crate) fn ready_check() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let began = Instant::now();
    let waits = yirage(&["bench-serve", "--port", &nobody, "--ready-check-timeout-sec", "0.5"]).ran();
    assert!(waits.code == 1 && began.elapsed() >= Duration::from_millis(500), "{}", waits.err);
}

pub(crate) fn request_time() {
    let told = Told::new();
    let ran = told.run(&["--request-time", "0.01"]).ran();
    assert!(ran.code == 1 && ran.err.contains("3 requests failed") && ran.err.contains("0.01 s"), "{}", ran.err);
}

/// `--percentile-metrics`, `--metric-percentiles`.
pub(crate) fn shown() {
    let told = Told::new();
    let usual = told.result(&[]);
    assert!(usual["p99_ttft_ms"].is_number() && usual["mean_itl_ms"].is_number() && usual["mean_e2el_ms"].is_null());
    let other = told.result(&["--percentile-metrics", "e2el", "--metric-percentiles", "50,99.9"]);
    assert!(other["mean_ttft_ms"].is_null() && other["p99_e2el_ms"].is_null());
    assert!(number(&other["p99.9_e2el_ms"]) >= number(&other["p50_e2el_ms"]));
    // The server takes at least so long.
    assert!(number(&other["p50_e2el_ms"]) >= 30.0);
    assert!(told.refused(&["--percentile-metrics", "speed"]).contains("ttft, tpot, itl, e2el"));
}

pub(crate) fn goodput() {
    let told = Told::new();
    assert!(told.result(&[])["request_goodput"].is_null());
    let good = told.result(&["--goodput", "e2el:1000000 tpot:1000000"]);
    assert_eq!(good["request_goodput"], good["request_throughput"]);
    assert_eq!(told.result(&["--goodput", "ttft:1000000", "--goodput", "e2el:1"])["request_goodput"], 0.0);
    assert!(told.refused(&["--goodput", "itl:3"]).contains("e2el:MS"));
}

/// Files of results: whether, where, under which name, with what.
pub(crate) fn saved() {
    let told = Told::new();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let result = |name: &str, more: &[&str]| {
        let path = folder.path().to_str().unwrap();
        told.result(&[&["--save-result", "--result-dir", path, "--result-filename", name], more].concat());
        std::fs::read_to_string(at(name)).unwrap()
    };
    let one: Value = serde_json::from_str(&result("a", &["--label", "run", "--metadata", "chip=x"])).unwrap();
    assert_eq!((&one["label"], &one["chip"], &one["ttfts"]), (&json!("run"), &json!("x"), &Value::Null));
    let detailed: Value = serde_json::from_str(&result("a", &["--save-detailed"])).unwrap();
    assert_eq!(detailed["generated_texts"], json!(["abc", "abc", "abc"]));
    assert_eq!((&detailed["label"], detailed["itls"][0].as_array().unwrap().len()), (&json!("openai"), 2));
    assert_eq!(result("a", &["--append-result"]).lines().count(), 2);
    let path = at("deeper");
    told.result(&["--save-result", "--result-dir", path.to_str().unwrap(), "--max-concurrency", "2"]);
    let name = std::fs::read_dir(path).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
    assert!(name.starts_with("openai-infqps-concurrency2-first-") && name.ends_with(".json"), "{name}");
    assert!(told.refused(&["--save-detailed"]).contains("--save-result"));
    let several = ["--save-result", "--result-filename", "b", "--max-concurrency", "1,2"];
    assert!(told.refused(&several).contains("--append-result"));
}

pub(crate) fn plotted() {
    let told = Told::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.svg");
    let ran = told.run(&["--max-concurrency", "1,2", "--plot", path.to_str().unwrap()]).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    let svg = std::fs::read_to_string(path).unwrap();
    // Two runs; p50 and p99 of three metrics, and two rates.
    assert_eq!((svg.matches("<circle").count(), svg.contains("inf/s, 2 open")), (16, true));
    assert!(ran.out.contains("Median TTFT (ms):") && ran.out.contains("P99 ITL (ms):"), "{}", ran.out);
}

#[test]
fn a_server_of_ours_is_measured() {
    let server = Serving::new(&["--served-model-name", "story"]);
    let url = format!("http://{}", server.address());
    let run = |more: &[&str]| {
        let load = ["--num-prompts", "4", "--random-input-len", "12", "--random-output-len", "5", "--ignore-eos"];
        yirage(&[&["bench-serve", "--base-url", &url, "--json"], &load[..], more].concat()).json()
    };
    let result = run(&[]);
    assert_eq!((&result["completed"], &result["model_id"]), (&json!(4), &json!("story")));
    // The server adds the token that its model wants in front to text, and none to ids.
    assert_eq!((&result["total_input_tokens"], &result["total_output_tokens"]), (&json!(48), &json!(20)));
    assert!(number(&result["mean_ttft_ms"]) > 0.0 && number(&result["output_throughput"]) > 0.0);
}
