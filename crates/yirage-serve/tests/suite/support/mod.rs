//! A server over a small model, and a client that sees every byte.
#![allow(unreachable_pub)]

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use yirage_engine::{EncoderOptions, EngineOptions};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_model::Checkpoint;
use yirage_model::chat::{TemplateSources, Templates};
use yirage_serve::{Generator, ModelEntry, RunningServer, ServeOptions, Served, Server};
use yirage_session::{LoadedEngine, TextEncoder};
use yirage_testkit::{bedtime, encoders, vision};

/// A template such as models that think and call tools have.
pub const TEMPLATE: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}\
    {% if tools %}tools <tool_call> {{ tools | tojson }}{% endif %}\
    {% if enable_thinking %}<think>{% endif %}{% if style %}{{ style }}{% endif %}\
    {% if add_generation_prompt %}assistant:{% endif %}{# </think> #}";

pub fn device() -> Arc<dyn Device> {
    yirage_cpu::Cpu.open(0, &OpenOptions { threads: Some(2), ..OpenOptions::default() }).unwrap().0
}

pub fn engine_options() -> EngineOptions {
    EngineOptions { context: Some(256), max_seqs: 4, ..EngineOptions::default() }
}

/// A model of half a megabyte with a chat template.
pub fn loaded(options: &EngineOptions) -> LoadedEngine {
    loaded_with(options, TEMPLATE)
}

/// The same with another template.
pub fn loaded_with(options: &EngineOptions, template: &str) -> LoadedEngine {
    let checkpoint = Checkpoint::open(bedtime::f32()).unwrap();
    let mut loaded = LoadedEngine::load(&checkpoint, device(), options, &mut |_, _| {}).unwrap();
    let texts = Arc::get_mut(loaded.texts.as_mut().unwrap()).unwrap();
    let sources = TemplateSources { user: Some(template), ..TemplateSources::default() };
    texts.templates = Templates::resolve(&sources).unwrap();
    loaded
}

pub fn generator(options: &EngineOptions) -> Generator {
    Generator::new(loaded(options).start().unwrap(), options.max_seqs as usize, None).unwrap()
}

pub fn story(options: EngineOptions) -> ModelEntry {
    let names = vec!["story".to_owned(), "org/story".to_owned()];
    ModelEntry::new(names, 1 << 20, Box::new(move || Ok(Served::Generator(Box::new(generator(&options))))))
}

/// The same with another template.
pub fn story_with(options: EngineOptions, template: &'static str) -> ModelEntry {
    let open = move || {
        let model = loaded_with(&options, template).start().unwrap();
        Ok(Served::Generator(Box::new(Generator::new(model, options.max_seqs as usize, None).unwrap())))
    };
    ModelEntry::new(vec!["story".to_owned()], 1 << 20, Box::new(open))
}

/// A model that fills gaps in.
pub fn fills_in(options: EngineOptions) -> ModelEntry {
    let open = move || {
        let checkpoint = Checkpoint::open(bedtime::that_fills_in()).unwrap();
        let loaded = LoadedEngine::load(&checkpoint, device(), &options, &mut |_, _| {}).unwrap();
        let model = loaded.start().unwrap();
        Ok(Served::Generator(Box::new(Generator::new(model, options.max_seqs as usize, None).unwrap())))
    };
    ModelEntry::new(vec!["filler".to_owned()], 1 << 20, Box::new(open))
}

/// A model that reads pictures.
pub fn seeing() -> ModelEntry {
    let open = move || {
        let options = EngineOptions { embedded: true, ..engine_options() };
        let checkpoint = Checkpoint::open(vision::model("llava")).unwrap();
        let model = LoadedEngine::load(&checkpoint, device(), &options, &mut |_, _| {}).unwrap().start().unwrap();
        Ok(Served::Generator(Box::new(Generator::new(model, options.max_seqs as usize, None).unwrap())))
    };
    ModelEntry::new(vec!["llava".to_owned()], 1 << 20, Box::new(open))
}

/// An encoder: `embed` gives vectors, `score` scores of pairs.
pub fn encoder(name: &'static str) -> ModelEntry {
    let open = move || {
        let checkpoint = Checkpoint::open(encoders::model(name)).unwrap();
        let encoder = TextEncoder::load(&checkpoint, device(), &EncoderOptions::default(), &mut |_, _| {}).unwrap();
        Ok(Served::Encoder(Box::new(encoder)))
    };
    ModelEntry::new(vec![name.to_owned()], 1 << 20, Box::new(open))
}

pub fn options() -> ServeOptions {
    ServeOptions { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..ServeOptions::default() }
}

pub fn serve_with(options: ServeOptions, models: Vec<ModelEntry>) -> RunningServer {
    Server::bind(options, models).unwrap().start().unwrap()
}

/// One model that generates.
pub fn serve() -> RunningServer {
    serve_with(options(), vec![story(engine_options())])
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answered {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answered {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// The objects of a stream of events, up to `[DONE]`, which has to be there.
    pub fn events(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        let frames: Vec<&str> = self.text().split("\n\n").filter(|frame| frame.starts_with("data: ")).collect();
        let (last, objects) = frames.split_last().unwrap();
        assert_eq!(*last, "data: [DONE]");
        objects.iter().map(|frame| serde_json::from_str(&frame["data: ".len()..]).unwrap()).collect()
    }
}

/// Sends bytes and reads one response to its end.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> Answered {
    let mut stream = connect(address);
    // A server that refuses early may close before all is sent.
    let _ = stream.write_all(bytes);
    read(&mut stream)
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Reads a response; its connection is to be closed behind it.
pub fn read(stream: &mut TcpStream) -> Answered {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => {
                all.extend_from_slice(&piece[..n]);
                if is_whole(&all) {
                    break;
                }
            }
            Err(e) if all.is_empty() => panic!("nothing came: {e}"),
            Err(_) => break,
        }
    }
    parse(&all)
}

/// Whether all that was announced is there.
fn is_whole(all: &[u8]) -> bool {
    let Some(end) = all.windows(4).position(|w| w == b"\r\n\r\n") else { return false };
    let answered = parse(&all[..end + 4]);
    let length = answered.header("content-length").and_then(|length| length.parse::<usize>().ok());
    length.is_some_and(|length| all.len() - end - 4 >= length)
        || answered.header("transfer-encoding").is_some() && all.ends_with(b"\r\n0\r\n\r\n")
}

fn parse(all: &[u8]) -> Answered {
    let end = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or_else(|| panic!("no head: {all:?}"));
    let head = std::str::from_utf8(&all[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| line.split_once(':').map(|(a, b)| (a.to_ascii_lowercase(), b.trim().to_owned()));
    let headers: Vec<(String, String)> = lines.filter_map(header).collect();
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if chunked { dechunked(&all[end + 4..]) } else { all[end + 4..].to_vec() };
    Answered { status, headers, body }
}

fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 || rest.len() < end + 2 + size {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
    body
}

/// A request's bytes.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "host") {
        head.push_str("host: localhost\r\n");
    }
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    [head.as_bytes(), b"\r\n", body].concat()
}

pub fn get(address: SocketAddr, path: &str) -> Answered {
    raw(address, &request("GET", path, &[], b""))
}

pub fn post(address: SocketAddr, path: &str, body: &Value) -> Answered {
    raw(address, &request("POST", path, &[("content-type", "application/json")], body.to_string().as_bytes()))
}

/// Posts, and wants success.
pub fn ok(address: SocketAddr, path: &str, body: &Value) -> Value {
    let answered = post(address, path, body);
    assert_eq!(answered.status, 200, "{path}: {}", answered.text());
    answered.json()
}
