//! Answers that are written while they are computed: server-sent events, and lines of JSON.
//!
//! A task writes, the connection reads. A reader that goes away ends the answer, and the connection gives up one that takes
//! nothing for too long; either drops what the task holds, by which the engine stops.

use crate::limits::FRAMES;
use crate::reply::line;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_core::Stream;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// The form of a streamed answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    /// `data: {...}` (WHATWG HTML, server-sent events).
    Events,
    /// The same with a name for each event, that of silence included: Anthropic's.
    Named,
    /// An object a line.
    Lines,
}

/// Nobody reads any more.
#[derive(Debug)]
pub(crate) struct Gone;

/// The writing end.
pub(crate) struct SseWriter {
    framing: Framing,
    to: mpsc::Sender<Bytes>,
}

struct Frames(mpsc::Receiver<Bytes>);

impl Stream for Frames {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|frame| frame.map(Ok))
    }
}

/// A response whose body `write` writes.
pub(crate) fn stream<F>(framing: Framing, write: impl FnOnce(SseWriter) -> F) -> Response
where
    F: Future<Output = Result<(), Gone>> + Send + 'static,
{
    let (to, from) = mpsc::channel(FRAMES);
    // Where nobody reads any more there is nobody to tell.
    tokio::spawn({
        let written = write(SseWriter { framing, to });
        async move { drop(written.await) }
    });
    let mut response = Response::new(Body::from_stream(Frames(from)));
    *response.status_mut() = StatusCode::OK;
    let kind = match framing {
        Framing::Events | Framing::Named => "text/event-stream",
        Framing::Lines => "application/x-ndjson",
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that gather an answer before they pass it on are asked not to.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl SseWriter {
    /// Writes an object.
    pub(crate) async fn data(&self, value: &Value) -> Result<(), Gone> {
        self.send(match self.framing {
            Framing::Events | Framing::Named => format!("data: {}\n\n", line(value)),
            Framing::Lines => format!("{}\n", line(value)),
        })
        .await
    }

    /// Writes an object as an event with a name.
    pub(crate) async fn event(&self, name: &str, value: &Value) -> Result<(), Gone> {
        self.send(format!("event: {name}\ndata: {}\n\n", line(value))).await
    }

    /// Writes the end as OpenAI's interface marks it.
    pub(crate) async fn done(&self) -> Result<(), Gone> {
        self.send("data: [DONE]\n\n".into()).await
    }

    /// Writes what keeps the connection open: a comment, or the event that Anthropic's clients know. Lines have neither.
    pub(crate) async fn ping(&self) -> Result<(), Gone> {
        match self.framing {
            Framing::Events => self.send(": keep-alive\n\n".into()).await,
            Framing::Named => self.event("ping", &json!({"type": "ping"})).await,
            Framing::Lines => Ok(()),
        }
    }

    /// Waits for what comes next, and keeps the connection open meanwhile: something is written each time that it has been
    /// silent for so long.
    ///
    /// # Errors
    /// [`Gone`].
    pub(crate) async fn keeping_alive<T>(&self, silence: Duration, next: impl Future<Output = T>) -> Result<T, Gone> {
        let mut next = pin!(next);
        loop {
            tokio::select! {
                said = &mut next => return Ok(said),
                () = self.to.closed() => return Err(Gone),
                () = tokio::time::sleep(silence) => self.ping().await?,
            }
        }
    }

    async fn send(&self, frame: String) -> Result<(), Gone> {
        self.to.send(Bytes::from(frame)).await.map_err(|_| Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a writer of this form writes.
    async fn written<F: Future<Output = Result<(), Gone>>>(
        framing: Framing,
        write: impl FnOnce(SseWriter) -> F,
    ) -> String {
        let (to, mut from) = mpsc::channel(8);
        write(SseWriter { framing, to }).await.unwrap();
        let mut all = Vec::new();
        while let Some(frame) = from.recv().await {
            all.extend_from_slice(&frame);
        }
        String::from_utf8(all).unwrap()
    }

    #[tokio::test]
    async fn silence_and_separators_in_every_form() {
        let all = [
            (Framing::Events, ": keep-alive\n\ndata: {\"a\":\"\\u2028\"}\n\n"),
            (Framing::Named, "event: ping\ndata: {\"type\":\"ping\"}\n\ndata: {\"a\":\"\\u2028\"}\n\n"),
            (Framing::Lines, "{\"a\":\"\\u2028\"}\n"),
        ];
        for (framing, wanted) in all {
            let write = |writer: SseWriter| async move {
                writer.ping().await?;
                writer.data(&json!({"a": "\u{2028}"})).await
            };
            assert_eq!(written(framing, write).await, wanted);
        }
    }

    /// Nothing here depends on how fast it is: what is waited for comes once the reader has seen the connection kept open.
    #[tokio::test]
    async fn a_long_silence_is_kept_open() {
        let (to, mut from) = mpsc::channel(8);
        let writer = SseWriter { framing: Framing::Events, to };
        let (seen, waited) = tokio::sync::oneshot::channel();
        let reader = tokio::spawn(async move {
            for _ in 0..3 {
                assert_eq!(from.recv().await.unwrap(), ": keep-alive\n\n");
            }
            seen.send("the first token").unwrap();
            from
        });
        let said = writer.keeping_alive(Duration::from_millis(1), waited).await.unwrap();
        assert_eq!(said, Ok("the first token"));
        // A reader that is gone ends the wait.
        drop(reader.await.unwrap());
        let never = std::future::pending::<()>();
        assert!(writer.keeping_alive(Duration::from_millis(1), never).await.is_err());
    }
}
