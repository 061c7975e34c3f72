//! A router before servers that are a few lines: what is asked again and what is not.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use yirage_route::{ReplicaAddress, RouteOptions, RouteServer, RouteStopper};

/// What a server does with a request that is no health check.
#[derive(Clone, Copy)]
enum Server {
    /// It answers with this status.
    Answers(u16),
    /// It hears the request and closes the connection.
    Closes,
    /// It begins a stream and closes the connection.
    BreaksOff,
}

/// A server on a thread of its own; how many requests it has heard beside health checks.
fn server(what: Server, is_ready: bool) -> (ReplicaAddress, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = ReplicaAddress::parse(&listener.local_addr().unwrap().to_string()).unwrap();
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), what, is_ready, &count);
        }
    });
    (address, heard)
}

fn answer(mut stream: TcpStream, what: Server, is_ready: bool, count: &AtomicUsize) {
    let head = request(&mut stream);
    let whole = |status: u16, text: &str| {
        format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len())
    };
    let text = if head.starts_with("GET /health ") {
        whole(if is_ready { 200 } else { 503 }, "health")
    } else {
        count.fetch_add(1, Ordering::SeqCst);
        match what {
            Server::Answers(status) => whole(status, "answer"),
            Server::Closes => String::new(),
            Server::BreaksOff => "HTTP/1.1 200 x\r\ncontent-length: 100\r\n\r\nbegun".into(),
        }
    };
    // A client that is gone hears nothing.
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.shutdown(Shutdown::Both);
}

/// The head of a request, whose body is read as well.
fn request(stream: &mut TcpStream) -> String {
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut piece).unwrap_or(0);
        all.extend_from_slice(&piece[..n]);
        let text = String::from_utf8_lossy(&all).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if n == 0 {
                return text;
            }
            continue;
        };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if n == 0 || body.len() >= length.unwrap_or(0) {
            return head.to_owned();
        }
    }
}

/// A router on a thread of its own.
struct Router {
    address: std::net::SocketAddr,
    stopper: RouteStopper,
    thread: Option<std::thread::JoinHandle<usize>>,
}

impl Router {
    fn new(replicas: &[&ReplicaAddress]) -> Router {
        let router = RouteServer::bind(RouteOptions {
            address: "127.0.0.1:0".parse().unwrap(),
            replicas: replicas.iter().map(|&address| address.clone()).collect(),
            health_time: Duration::from_millis(200),
            affinity_slack: 4,
            drain_time: Duration::from_secs(10),
        });
        let router = router.unwrap();
        let (address, stopper) = (router.address(), router.stopper());
        Router { address, stopper, thread: Some(std::thread::spawn(move || router.run().unwrap())) }
    }

    /// The status of an answer, and what stands behind its head.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.0\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        let mut all = Vec::new();
        // One that breaks off may end with an error here.
        let _ = stream.read_to_end(&mut all);
        let all = String::from_utf8(all).unwrap();
        let (head, body) = all.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn figure(&self, line: &str) -> String {
        let text = self.ask("GET", "/metrics", "").1;
        let found = text.lines().find_map(|known| known.strip_prefix(line)).unwrap_or_else(|| panic!("{line}: {text}"));
        found.trim().to_owned()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.stopper.stop();
        assert_eq!(self.thread.take().unwrap().join().unwrap(), 0, "nothing was cut off");
    }
}

#[test]
fn who_has_not_begun_is_asked_no_more_and_another_one_is() {
    for (what, failed) in [(Server::Answers(503), "0"), (Server::Answers(429), "0"), (Server::Closes, "1")] {
        let ((bad, heard), (good, answered)) = (server(what, true), server(Server::Answers(200), true));
        let router = Router::new(&[&bad, &good]);
        assert_eq!(router.ask("POST", "/v1/completions", "{}"), (200, "answer".into()));
        assert_eq!((heard.load(Ordering::SeqCst), answered.load(Ordering::SeqCst)), (1, 1));
        assert_eq!(router.figure("yirage_route_retries_total "), "1");
        assert_eq!(
            router.figure(&format!("yirage_route_requests_failed_total{{replica=\"{}\"}}", bad.authority())),
            failed
        );
    }
    // Where all say so, the last one's answer is passed on.
    let (busy, _) = server(Server::Answers(429), true);
    assert_eq!(Router::new(&[&busy]).ask("POST", "/v1/completions", "{}"), (429, "answer".into()));
}

#[test]
fn what_may_have_been_done_is_not_asked_again() {
    let ((bad, heard), (good, answered)) = (server(Server::Closes, true), server(Server::Answers(200), true));
    let router = Router::new(&[&bad, &good]);
    let (status, text) = router.ask("POST", "/slots/0?action=save", "{}");
    assert!(status == 502 && text.contains("asking again may do it twice"), "{status} {text}");
    assert_eq!((heard.load(Ordering::SeqCst), answered.load(Ordering::SeqCst)), (1, 0));
}

#[test]
fn an_answer_that_has_begun_breaks_off_where_its_server_does() {
    let ((bad, heard), (good, answered)) = (server(Server::BreaksOff, true), server(Server::Answers(200), true));
    let router = Router::new(&[&bad, &good]);
    let (status, text) = router.ask("POST", "/v1/completions", r#"{"stream": true}"#);
    assert!(status == 200 && text.len() < 100, "{status} {text}");
    assert_eq!((heard.load(Ordering::SeqCst), answered.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(router.figure(&format!("yirage_route_answers_broken_total{{replica=\"{}\"}}", bad.authority())), "1");
}

#[test]
fn who_is_not_ready_gets_nothing_and_the_router_says_why() {
    let (bad, heard) = server(Server::Answers(200), false);
    let router = Router::new(&[&bad]);
    while router.ask("GET", "/health", "").0 != 503 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (status, text) = router.ask("POST", "/v1/completions", "{}");
    assert!(status == 503 && text.contains("status 503: health") && text.contains("no_replica"), "{status} {text}");
    assert_eq!(heard.load(Ordering::SeqCst), 0);
    assert_eq!(router.figure("yirage_route_refused_total "), "1");
    assert_eq!(router.ask("GET", "/health/live", "").0, 200);
}

#[test]
fn bodies_of_all_requests_together_are_bounded() {
    let (good, answered) = server(Server::Answers(200), true);
    let router = Router::new(&[&good]);
    let head = format!("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", 32 << 20);
    let mut streams: Vec<TcpStream> = (0..17).map(|_| TcpStream::connect(router.address).unwrap()).collect();
    for stream in &mut streams {
        stream.write_all(head.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    }
    // Sixteen wait for their bodies, and one is told that there is no room.
    let mut said = [0; 12];
    while !streams.iter_mut().any(|stream| stream.read_exact(&mut said).is_ok()) {}
    assert_eq!(&said, b"HTTP/1.1 503");
    // What is small is taken all the same once one of them is gone.
    drop(streams);
    while router.ask("POST", "/v1/completions", "{}").0 != 200 {}
    assert_eq!(answered.load(Ordering::SeqCst), 1);
}
