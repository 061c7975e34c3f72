//! Answers of /api/chat and /api/generate, whole and in parts.

use super::active::OllamaAnswer;
use super::clock;
use crate::error::ApiError;
use crate::generate::{AnswerEnd, AnswerUpdate, Ending};
use crate::reply;
use crate::response_parser::{ResponsePiece, ToolCall};
use crate::sse::{Gone, SseWriter};
use axum::response::Response;
use serde_json::{Value, json};

/// What was said, all or a part of it.
#[derive(Default)]
struct OllamaDelta {
    text: String,
    thought: String,
    calls: Vec<ToolCall>,
}

impl OllamaDelta {
    fn add(&mut self, piece: ResponsePiece) {
        match piece {
            ResponsePiece::Content(text) => self.text.push_str(&text),
            ResponsePiece::Reasoning(text) => self.thought.push_str(&text),
            ResponsePiece::Call(part) => ToolCall::add(&mut self.calls, part),
        }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thought.is_empty() && self.calls.is_empty()
    }

    /// What can be told: all but a call that is not whole, which stays.
    fn take_complete(&mut self) -> OllamaDelta {
        let open = self.calls.pop_if(|call| !call.ended);
        std::mem::replace(self, OllamaDelta { calls: open.into_iter().collect(), ..OllamaDelta::default() })
    }
}

/// A call: here arguments are an object, not its text.
fn call(call: &ToolCall) -> Value {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({"function": {"name": call.name, "arguments": arguments}})
}

impl OllamaAnswer {
    fn object(&self, part: OllamaDelta, end: Option<&AnswerEnd>) -> Value {
        let mut object = json!({
            "model": self.turns.lease().name(),
            "created_at": clock::now(),
            "done": end.is_some(),
        });
        if self.as_message {
            let mut message = json!({"role": "assistant", "content": part.text});
            if !part.thought.is_empty() {
                message["thinking"] = part.thought.into();
            }
            if !part.calls.is_empty() {
                message["tool_calls"] = part.calls.iter().map(call).collect();
            }
            object["message"] = message;
        } else {
            object["response"] = part.text.into();
            if !part.thought.is_empty() {
                object["thinking"] = part.thought.into();
            }
        }
        let Some(end) = end else { return object };
        let (usage, finished) = (&end.finished.usage, &end.finished);
        let nanoseconds = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        object["done_reason"] = if end.ending == Ending::Length { "length" } else { "stop" }.into();
        object["total_duration"] = nanoseconds(self.began.elapsed()).into();
        object["load_duration"] = 0.into();
        object["prompt_eval_count"] = usage.prompt_tokens.into();
        object["prompt_eval_duration"] = nanoseconds(finished.prefill).into();
        object["eval_count"] = usage.new_tokens.into();
        object["eval_duration"] = nanoseconds(finished.decode).into();
        object
    }
}

/// Adds what was said to `part`.
fn hear(part: &mut OllamaDelta, said: AnswerUpdate) -> Option<Box<AnswerEnd>> {
    let (pieces, end) = match said {
        AnswerUpdate::Pieces { pieces, .. } => (pieces, None),
        AnswerUpdate::Ended { pieces, end, .. } => (pieces, Some(end)),
        AnswerUpdate::Prompt { .. } => (Vec::new(), None),
    };
    pieces.into_iter().for_each(|piece| part.add(piece));
    end
}

/// The response of a request without a stream.
///
/// # Errors
/// What the answer ended with.
pub(super) async fn whole(mut begun: OllamaAnswer) -> Result<Response, ApiError> {
    let (mut all, mut ended) = (OllamaDelta::default(), None);
    while let Some(said) = begun.turns.next().await? {
        ended = hear(&mut all, said).or(ended);
    }
    Ok(reply::json(&begun.object(all.take_complete(), ended.as_deref())))
}

/// Writes the lines of a request.
///
/// # Errors
/// [`Gone`].
pub(super) async fn stream(mut begun: OllamaAnswer, writer: SseWriter) -> Result<(), Gone> {
    let mut part = OllamaDelta::default();
    loop {
        let said = match begun.turns.next_for(&writer).await? {
            Ok(Some(said)) => said,
            Ok(None) => return Ok(()),
            Err(error) => return writer.data(&error.ollama()).await,
        };
        let end = hear(&mut part, said);
        let told = part.take_complete();
        // Parts of a call alone are no line.
        if end.is_some() || !told.is_empty() {
            writer.data(&begun.object(told, end.as_deref())).await?;
        }
    }
}
