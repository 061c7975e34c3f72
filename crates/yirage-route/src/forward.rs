//! One request to one replica, on a connection of its own: its answer's head, or that there is none.

use crate::limits::MAX_HEAD;
use crate::replica::Replica;
use axum::body::{Body, Bytes};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a replica may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// What is of a connection and not of the request.
const OF_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NoAnswer {
    /// The replica has not heard of the request.
    NotSent(String),
    /// It may have begun with it.
    Sent(String),
}

impl NoAnswer {
    pub(crate) fn why(&self) -> &str {
        match self {
            NoAnswer::NotSent(why) | NoAnswer::Sent(why) => why,
        }
    }
}

/// Without what is of a connection, among it what the connection's own header names.
pub(crate) fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<String> =
        named.flat_map(|list| list.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect();
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if !OF_CONNECTION.contains(name) && !named.iter().any(|of| of == name.as_str()) && name.as_str() != "keep-alive"
        {
            kept.append(name, value.clone());
        }
    }
    kept
}

/// Gives the request to a replica and waits for the head of its answer, until it comes or the replica is unreachable.
///
/// # Errors
/// [`NoAnswer`].
pub(crate) async fn forward(replica: &Replica, parts: &Parts, body: &Bytes) -> Result<Response<Incoming>, NoAnswer> {
    let authority = replica.address.authority();
    let not_sent = |why: String| NoAnswer::NotSent(format!("no connection to {authority}: {why}"));
    let connect = tokio::time::timeout(CONNECT, TcpStream::connect(authority)).await;
    let stream = connect.map_err(|_| not_sent(format!("it took more than {} s", CONNECT.as_secs())))?;
    let stream = stream.map_err(|error| not_sent(error.to_string()))?;
    // Requests are to be sent at once.
    stream.set_nodelay(true).map_err(|error| not_sent(error.to_string()))?;
    let mut http = http1::Builder::new();
    http.max_buf_size(MAX_HEAD.max(8192));
    let shaken = http.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| not_sent(error.to_string()))?;
    // It ends with the answer, or says its error there.
    tokio::spawn(connection);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder().method(&parts.method).uri(path);
    if let Some(headers) = request.headers_mut() {
        *headers = end_to_end(&parts.headers);
        headers.remove(header::CONTENT_LENGTH);
        // Whom the client asked for is the server's to check, as if it had been asked itself: a page elsewhere may point a name of its
        // own at this machine.
        if !headers.contains_key(header::HOST) {
            headers
                .insert(header::HOST, HeaderValue::from_str(authority).map_err(|error| not_sent(error.to_string()))?);
        }
    }
    let request = request.body(Body::from(body.clone())).map_err(|error| not_sent(error.to_string()))?;
    let sent = |why: String| NoAnswer::Sent(format!("{authority} gave no answer: {why}"));
    tokio::select! {
        answer = sender.send_request(request) => answer.map_err(|error| sent(error.to_string())),
        why = replica.lost() => Err(sent(why)),
    }
}
