//! Connections: one for each request, so that nothing is measured of another.

use crate::{LoadError, LoadTarget};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::TcpStream;

/// Bytes of an answer that is no stream.
const MAX_ANSWER: usize = 64 << 20;

/// How long the server may take to answer a question about itself.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);

/// An answer whose body is read piece by piece.
pub(crate) struct StreamedResponse {
    pub(crate) status: u16,
    body: Incoming,
}

impl StreamedResponse {
    /// The next bytes; none at the end.
    pub(crate) async fn piece(&mut self) -> Result<Option<hyper::body::Bytes>, String> {
        loop {
            let frame = std::future::poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(format!("the answer broke off: {error}")),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// All of it.
    pub(crate) async fn whole(mut self) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        while let Some(bytes) = self.piece().await? {
            if all.len() + bytes.len() > MAX_ANSWER {
                return Err(format!("the answer has more than {MAX_ANSWER} bytes"));
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }
}

impl LoadTarget {
    /// Whether all headers can be sent.
    pub(crate) fn check_headers(&self) -> Result<(), LoadError> {
        let wrong = |name: &str| LoadError::Header { name: name.to_owned() };
        for (name, value) in &self.headers {
            HeaderName::try_from(name.as_str()).map_err(|_| wrong(name))?;
            HeaderValue::try_from(value.as_str()).map_err(|_| wrong(name))?;
        }
        Ok(())
    }

    /// Opens a connection, asks, and gives the head of the answer.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: String) -> Result<StreamedResponse, String> {
        let connect = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = connect.map_err(|error| format!("no connection to {}: {error}", self.authority()))?;
        // Requests are small, and each is to be sent at once.
        stream.set_nodelay(true).map_err(|error| format!("the connection cannot be set up: {error}"))?;
        let broken = |error: hyper::Error| format!("the request failed: {error}");
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // It ends with the answer, or says its error there.
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.prefix));
        request = request.header(HOST, self.authority()).header(CONTENT_TYPE, "application/json");
        for (name, value) in &self.headers {
            request = request.header(name.as_str(), value.as_str());
        }
        let request = request.body(body).map_err(|error| format!("no such request: {error}"))?;
        let response: Response<Incoming> = sender.send_request(request).await.map_err(broken)?;
        Ok(StreamedResponse { status: response.status().as_u16(), body: response.into_body() })
    }

    /// The JSON of an answer with status 200.
    pub(crate) async fn json(&self, method: Method, path: &str, body: String) -> Result<Value, LoadError> {
        let wrong = |why| LoadError::Asked { path: format!("{}{path}", self.address()), why };
        let asked = async {
            let answer = self.ask(method, path, body).await?;
            let status = answer.status;
            let bytes = answer.whole().await?;
            match status {
                200 => serde_json::from_slice(&bytes).map_err(|error| format!("the answer is no JSON: {error}")),
                _ => Err(refusal(status, &bytes)),
            }
        };
        let in_time = tokio::time::timeout(QUERY_TIMEOUT, asked).await;
        in_time.map_err(|_| wrong(format!("no answer came in {} s", QUERY_TIMEOUT.as_secs())))?.map_err(wrong)
    }
}

/// What a server says where it refuses: its message, else the beginning of what it sent.
pub(crate) fn refusal(status: u16, bytes: &[u8]) -> String {
    let object: Option<Value> = serde_json::from_slice(bytes).ok();
    let message = object.as_ref().and_then(|object| match &object["error"] {
        Value::String(text) => Some(text.as_str()),
        error => error["message"].as_str().or(object["message"].as_str()),
    });
    let text = message.map_or_else(|| String::from_utf8_lossy(bytes).chars().take(200).collect(), str::to_owned);
    format!("status {status}: {text}")
}
