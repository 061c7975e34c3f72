//! Answers of /v1/messages, whole and in parts.

use super::active::ActiveMessage;
use crate::error::ApiError;
use crate::generate::{AnswerEnd, AnswerUpdate, Ending, StopCause};
use crate::reply;
use crate::response_parser::{CallPart, ResponsePiece, ToolCall};
use crate::sse::{Gone, SseWriter};
use axum::response::Response;
use serde_json::{Value, json};

/// The kind of a content block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnthropicBlockKind {
    Thinking,
    Text,
    ToolUse,
}

impl AnthropicBlockKind {
    fn of(piece: &ResponsePiece) -> AnthropicBlockKind {
        match piece {
            ResponsePiece::Reasoning(_) => AnthropicBlockKind::Thinking,
            ResponsePiece::Content(_) => AnthropicBlockKind::Text,
            ResponsePiece::Call(_) => AnthropicBlockKind::ToolUse,
        }
    }
}

impl ActiveMessage {
    fn object(&self, content: Vec<Value>, end: Option<&AnswerEnd>) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.conversing.turns.lease().name(),
            "content": content,
            "stop_reason": end.map(stop_reason),
            "stop_sequence": end.map_or(Value::Null, stop_sequence),
            "usage": self.usage(end),
        })
    }

    /// Tokens that were read from the cache are not among those of the input, as Anthropic counts.
    fn usage(&self, end: Option<&AnswerEnd>) -> Value {
        let (cached, new) = end.map_or((0, 0), |end| (end.finished.usage.cached_tokens, end.finished.usage.new_tokens));
        json!({
            "input_tokens": self.conversing.prompt.len().saturating_sub(cached),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": new,
        })
    }

    fn call_id(&self, at: usize) -> String {
        format!("toolu_{}_{at}", self.id.trim_start_matches("msg-"))
    }
}

fn stop_reason(end: &AnswerEnd) -> &'static str {
    match (end.ending, &end.stop) {
        (Ending::Calls, _) => "tool_use",
        (Ending::Length, _) => "max_tokens",
        (Ending::Stop, Some(_)) => "stop_sequence",
        (Ending::Stop, None) => "end_turn",
    }
}

fn stop_sequence(end: &AnswerEnd) -> Value {
    match &end.stop {
        Some(StopCause::Text(text)) => text.as_str().into(),
        _ => Value::Null,
    }
}

/// A content block of a whole answer.
enum AnthropicBlock {
    Thinking(String),
    Text(String),
    ToolUse(ToolCall),
}

impl AnthropicBlock {
    /// Adds a piece to the last block, or as a new one.
    fn add(all: &mut Vec<AnthropicBlock>, piece: ResponsePiece) {
        match (all.last_mut(), piece) {
            (Some(AnthropicBlock::Text(all)), ResponsePiece::Content(text))
            | (Some(AnthropicBlock::Thinking(all)), ResponsePiece::Reasoning(text)) => {
                all.push_str(&text);
            }
            (_, ResponsePiece::Content(text)) => all.push(AnthropicBlock::Text(text)),
            (_, ResponsePiece::Reasoning(text)) => all.push(AnthropicBlock::Thinking(text)),
            (Some(AnthropicBlock::ToolUse(call)), ResponsePiece::Call(CallPart::Arguments(text))) => {
                call.arguments.push_str(&text)
            }
            (_, ResponsePiece::Call(CallPart::Begin(name))) => {
                all.push(AnthropicBlock::ToolUse(ToolCall { name, ..ToolCall::default() }))
            }
            (_, ResponsePiece::Call(CallPart::Arguments(_) | CallPart::End)) => {}
        }
    }
}

/// Arguments as an object again.
fn input(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!({}))
}

fn parts(said: AnswerUpdate) -> (Vec<ResponsePiece>, Option<Box<AnswerEnd>>) {
    match said {
        AnswerUpdate::Pieces { pieces, .. } => (pieces, None),
        AnswerUpdate::Ended { pieces, end, .. } => (pieces, Some(end)),
        AnswerUpdate::Prompt { .. } => (Vec::new(), None),
    }
}

/// The response of a request without a stream.
///
/// # Errors
/// What the answer ended with.
pub(super) async fn whole(mut message: ActiveMessage) -> Result<Response, ApiError> {
    let mut all: Vec<AnthropicBlock> = Vec::new();
    let mut ended = None;
    while let Some(said) = message.conversing.turns.next().await? {
        let (pieces, end) = parts(said);
        pieces.into_iter().for_each(|piece| AnthropicBlock::add(&mut all, piece));
        ended = end.or(ended);
    }
    let block = |(at, block): (usize, AnthropicBlock)| match block {
        AnthropicBlock::Thinking(text) => json!({"type": "thinking", "thinking": text, "signature": ""}),
        AnthropicBlock::Text(text) => json!({"type": "text", "text": text}),
        AnthropicBlock::ToolUse(call) => {
            json!({"type": "tool_use", "id": message.call_id(at), "name": call.name, "input": input(&call.arguments)})
        }
    };
    let content = all.into_iter().enumerate().map(block).collect();
    Ok(reply::json(&message.object(content, ended.as_deref())))
}

/// Writes the stream of a request.
///
/// # Errors
/// [`Gone`].
pub(super) async fn stream(mut message: ActiveMessage, writer: SseWriter) -> Result<(), Gone> {
    let start = json!({"type": "message_start", "message": message.object(Vec::new(), None)});
    writer.event("message_start", &start).await?;
    let (mut at, mut open) = (0, None);
    loop {
        let said = match message.conversing.turns.next_for(&writer).await? {
            Ok(Some(said)) => said,
            Ok(None) => break,
            Err(error) => return writer.event("error", &error.anthropic()).await,
        };
        let (pieces, end) = parts(said);
        for piece in pieces {
            let kind = AnthropicBlockKind::of(&piece);
            // A call is a block of its own, and pieces of one kind share theirs.
            let begins = matches!(piece, ResponsePiece::Call(CallPart::Begin(_)));
            if open.is_some_and(|open| open != kind || begins) {
                writer.event("content_block_stop", &json!({"type": "content_block_stop", "index": at})).await?;
                (at, open) = (at + 1, None);
            }
            if open.is_none() {
                begin(&message, &writer, at, &piece).await?;
                open = Some(kind);
            }
            let delta = match piece {
                ResponsePiece::Reasoning(text) => json!({"type": "thinking_delta", "thinking": text}),
                ResponsePiece::Content(text) => json!({"type": "text_delta", "text": text}),
                ResponsePiece::Call(CallPart::Arguments(text)) => {
                    json!({"type": "input_json_delta", "partial_json": text})
                }
                ResponsePiece::Call(CallPart::Begin(_) | CallPart::End) => continue,
            };
            let event = json!({"type": "content_block_delta", "index": at, "delta": delta});
            writer.event("content_block_delta", &event).await?;
        }
        if let Some(end) = end {
            if open.take().is_some() {
                writer.event("content_block_stop", &json!({"type": "content_block_stop", "index": at})).await?;
            }
            let delta = json!({"stop_reason": stop_reason(&end), "stop_sequence": stop_sequence(&end)});
            let event = json!({"type": "message_delta", "delta": delta, "usage": message.usage(Some(&end))});
            writer.event("message_delta", &event).await?;
        }
    }
    writer.event("message_stop", &json!({"type": "message_stop"})).await
}

async fn begin(message: &ActiveMessage, writer: &SseWriter, at: usize, piece: &ResponsePiece) -> Result<(), Gone> {
    let block = match piece {
        ResponsePiece::Reasoning(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
        ResponsePiece::Content(_) => json!({"type": "text", "text": ""}),
        ResponsePiece::Call(part) => {
            let name = if let CallPart::Begin(name) = part { name.as_str() } else { "" };
            json!({"type": "tool_use", "id": message.call_id(at), "name": name, "input": {}})
        }
    };
    let event = json!({"type": "content_block_start", "index": at, "content_block": block});
    writer.event("content_block_start", &event).await
}
