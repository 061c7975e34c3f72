//! A hub on the loopback interface: files with ranges, and whatever misbehaviour a test asks for.
//!
//! Knows no type of ours: the tests of the command line use it as well.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![expect(clippy::unwrap_used, reason = "a test server that cannot start fails the test")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
}

/// What to do with a request instead of serving the file.
#[derive(Debug, Clone)]
pub(crate) enum Trick {
    /// A status, headers, and no file.
    Status(u16, Vec<(String, String)>),
    /// Stop after so many bytes of the file.
    Cut(usize),
    /// Send so many bytes of the file, and then nothing until the other side is gone.
    Hold(usize),
    /// Serve from the start whatever range was asked for.
    IgnoreRange,
    /// Serve other bytes of the same length.
    Garble,
    /// Serve it so many bytes at a time, with this pause before each.
    Drip(usize, Duration),
}

#[derive(Default)]
struct State {
    /// Path to body, entity tag.
    files: HashMap<String, (Vec<u8>, String)>,
    /// Path to the head of an answer that sends elsewhere.
    moved: HashMap<String, String>,
    /// For a path: what to do with its next GET requests, in order.
    tricks: HashMap<String, Vec<Trick>>,
    seen: Vec<Seen>,
}

pub(crate) struct FakeHub {
    pub(crate) address: String,
    state: Arc<Mutex<State>>,
}

impl FakeHub {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address, state }
    }

    /// Serves `body` at `path` under `etag`.
    pub(crate) fn file(&self, path: &str, body: &[u8], etag: &str) {
        self.state.lock().unwrap().files.insert(path.to_owned(), (body.to_vec(), etag.to_owned()));
    }

    /// Serves repository `o/r` at commit `c0ffee` with these files; the tag of each is its SHA-256.
    pub(crate) fn repo(&self, files: &[(&str, &[u8])]) {
        let siblings: Vec<String> = files.iter().map(|(name, _)| format!("{{\"rfilename\":\"{name}\"}}")).collect();
        let listing = format!("{{\"sha\":\"c0ffee\",\"private\":false,\"siblings\":[{}]}}", siblings.join(","));
        self.file("/api/models/o/r/revision/main", listing.as_bytes(), "listing");
        for (name, body) in files {
            self.file(&format!("/o/r/resolve/c0ffee/{name}"), body, &sha256(body));
        }
    }

    /// Sends requests for `path` on to `place`, telling what is there, as the hub does with large files.
    pub(crate) fn moved(&self, path: &str, place: &str, body: &[u8]) {
        let told = format!("X-Linked-Size: {}\r\nX-Linked-Etag: \"{}\"\r\n", body.len(), sha256(body));
        let head = format!("HTTP/1.1 302 X\r\nLocation: {place}\r\n{told}Content-Length: 0\r\n\r\n");
        self.state.lock().unwrap().moved.insert(path.to_owned(), head);
    }

    /// The next GET requests for `path` meet these, one each.
    pub(crate) fn trick(&self, path: &str, tricks: &[Trick]) {
        self.state.lock().unwrap().tricks.insert(path.to_owned(), tricks.to_vec());
    }

    /// What GET requests for `path` asked for so far: their ranges, empty for the whole.
    pub(crate) fn ranges(&self, path: &str) -> Vec<String> {
        let gets = self.seen(path).into_iter().filter(|seen| seen.method == "GET");
        gets.map(|seen| seen.headers.get("range").cloned().unwrap_or_default()).collect()
    }

    /// All requests for `path` so far.
    pub(crate) fn seen(&self, path: &str) -> Vec<Seen> {
        self.state.lock().unwrap().seen.iter().filter(|seen| seen.path == path).cloned().collect()
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read_request(&mut reader) {
        if !answer(&stream, &request, state) {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Some(Seen { method, path, headers })
}

/// Answers one request; `false` when the connection is to be cut.
fn answer(mut stream: &TcpStream, request: &Seen, state: &Mutex<State>) -> bool {
    let mut state = state.lock().unwrap();
    state.seen.push(request.clone());
    let is_head = request.method == "HEAD";
    let tricks = state.tricks.get_mut(&request.path).filter(|tricks| !is_head && !tricks.is_empty());
    let trick = tricks.map(|tricks| tricks.remove(0));
    let found = state.files.get(&request.path).cloned();
    let moved = state.moved.get(&request.path).cloned();
    drop(state);
    if let Some(Trick::Status(status, headers)) = &trick {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        return write!(stream, "HTTP/1.1 {status} X\r\n{headers}Content-Length: 0\r\n\r\n").is_ok();
    }
    if let Some(head) = moved {
        return stream.write_all(head.as_bytes()).is_ok();
    }
    let Some((mut body, etag)) = found else {
        return write!(stream, "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n").is_ok();
    };
    if matches!(trick, Some(Trick::Garble)) {
        body.iter_mut().for_each(|byte| *byte ^= 0xff);
    }
    let asked =
        request.headers.get("range").and_then(|text| text.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let start = asked.filter(|_| !matches!(trick, Some(Trick::IgnoreRange))).unwrap_or(0usize);
    let (status, range) = match start {
        0 => (200, String::new()),
        start if start >= body.len() => {
            return write!(stream, "HTTP/1.1 416 X\r\nContent-Length: 0\r\n\r\n").is_ok();
        }
        start => (206, format!("Content-Range: bytes {start}-{}/{}\r\n", body.len() - 1, body.len())),
    };
    let rest = &body[start..];
    let head = format!("HTTP/1.1 {status} X\r\nETag: \"{etag}\"\r\n{range}Content-Length: {}\r\n\r\n", rest.len());
    let sent = match trick {
        Some(Trick::Cut(length) | Trick::Hold(length)) => &rest[..length.min(rest.len())],
        _ => rest,
    };
    let slowly = match trick {
        Some(Trick::Drip(bytes, pause)) if !is_head => Some((bytes, pause)),
        _ => None,
    };
    let send = |mut stream: &TcpStream| match slowly {
        Some((bytes, pause)) => sent.chunks(bytes).all(|part| {
            std::thread::sleep(pause);
            stream.write_all(part).is_ok()
        }),
        None => is_head || stream.write_all(sent).is_ok(),
    };
    let whole = stream.write_all(head.as_bytes()).is_ok() && send(stream);
    if matches!(trick, Some(Trick::Hold(_))) && !is_head {
        // Nothing comes any more: this ends when the other side closes the connection.
        let _ = stream.read(&mut [0]);
    }
    if !whole || sent.len() < rest.len() {
        let _ = stream.shutdown(std::net::Shutdown::Both);
        return false;
    }
    true
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
