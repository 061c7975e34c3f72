//! One answer as its client sees it.

use crate::http::{StreamedResponse, refusal};
use crate::{LoadRequest, LoadTarget};
use hyper::Method;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Bytes of one event of a stream.
const MAX_EVENT: usize = 8 << 20;

/// What was seen of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestMetrics {
    /// When it was sent, since the start of the run.
    pub started: Duration,
    /// From sending it to the first text.
    pub ttft: Duration,
    /// Between one text of the stream and the next.
    pub itl: Vec<Duration>,
    /// From sending it to the last text.
    pub latency: Duration,
    /// Tokens of the prompt: those that the server counted, else those that were meant.
    pub input_len: usize,
    /// Tokens of the answer: those that the server counted, else the texts of the stream.
    pub output_len: usize,
    /// The answer.
    pub text: String,
    /// Why there is no whole answer.
    pub error: Option<String>,
}

impl RequestMetrics {
    /// Time per token behind the first; none of an answer of one token.
    pub fn tpot(&self) -> Option<Duration> {
        let gaps = u32::try_from(self.output_len).ok()?.checked_sub(1).filter(|gaps| *gaps > 0)?;
        Some(self.latency.saturating_sub(self.ttft) / gaps)
    }
}

/// Sends one request and watches its answer. `start` is the run's.
pub(crate) async fn measure_request(target: &LoadTarget, sample: &LoadRequest, start: Instant) -> RequestMetrics {
    let began = Instant::now();
    let mut seen = RequestMetrics {
        started: began.saturating_duration_since(start),
        input_len: sample.input_len.unwrap_or(0),
        ..RequestMetrics::default()
    };
    let watched = stream(target, sample, began, &mut seen);
    let ended = match target.request_time {
        None => watched.await,
        Some(time) => {
            let late = || Err(format!("no whole answer came in {} s", time.as_secs_f64()));
            tokio::time::timeout(time, watched).await.unwrap_or_else(|_| late())
        }
    };
    seen.error = ended.err();
    seen
}

async fn stream(
    target: &LoadTarget,
    sample: &LoadRequest,
    began: Instant,
    seen: &mut RequestMetrics,
) -> Result<(), String> {
    let body = target.body(sample).to_string();
    let mut answer = target.ask(Method::POST, &target.endpoint, body).await?;
    if answer.status != 200 {
        let status = answer.status;
        return Err(refusal(status, &answer.whole().await?));
    }
    let mut watched = StreamProgress { began, last: None, texts: 0, counted: None };
    read(&mut answer, &mut watched, seen).await?;
    match watched.last {
        None => return Err("the stream ended without any text".into()),
        Some(last) => seen.latency = last,
    }
    seen.output_len = watched.counted.unwrap_or(watched.texts);
    Ok(())
}

/// What is known while the stream comes.
struct StreamProgress {
    began: Instant,
    /// The last text, since it began.
    last: Option<Duration>,
    texts: usize,
    /// Tokens by the server's count.
    counted: Option<usize>,
}

async fn read(
    answer: &mut StreamedResponse,
    watched: &mut StreamProgress,
    seen: &mut RequestMetrics,
) -> Result<(), String> {
    let mut pending: Vec<u8> = Vec::new();
    while let Some(bytes) = answer.piece().await? {
        let now = watched.began.elapsed();
        pending.extend_from_slice(&bytes);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            let Some(data) = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) else { continue };
            if data == b"[DONE]" {
                return Ok(());
            }
            watched.event(data, now, seen)?;
        }
        if pending.len() > MAX_EVENT {
            return Err(format!("an event of the stream has more than {MAX_EVENT} bytes"));
        }
    }
    Err("the stream ended without [DONE]".into())
}

impl StreamProgress {
    fn event(&mut self, data: &[u8], now: Duration, seen: &mut RequestMetrics) -> Result<(), String> {
        let event: Value = serde_json::from_slice(data).map_err(|error| format!("an event is no JSON: {error}"))?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(format!("the stream broke off: {}", error["message"].as_str().unwrap_or("no message")));
        }
        let count = |name: &str| event["usage"][name].as_u64().and_then(|n| usize::try_from(n).ok());
        self.counted = count("completion_tokens").or(self.counted);
        seen.input_len = count("prompt_tokens").unwrap_or(seen.input_len);
        let choice = &event["choices"][0];
        let said = [&choice["text"], &choice["delta"]["reasoning_content"], &choice["delta"]["reasoning"]];
        let said = said.into_iter().chain([&choice["delta"]["content"]]).filter_map(Value::as_str);
        let text: String = said.collect();
        if text.is_empty() {
            return Ok(());
        }
        match self.last {
            None => seen.ttft = now,
            Some(last) => seen.itl.push(now.saturating_sub(last)),
        }
        self.last = Some(now);
        self.texts += 1;
        seen.text.push_str(&text);
        Ok(())
    }
}
