//! Answers of /v1/chat/completions, whole and in parts.

use super::active::{ActiveChat, PART, WHOLE, fingerprint};
use super::logprobs;
use crate::error::ApiError;
use crate::generate::{AnswerEnd, AnswerToken, AnswerUpdate, Ending, StopCause, Usage};
use crate::reply;
use crate::response_parser::{CallPart, ResponsePiece, ToolCall};
use crate::sse::{Gone, SseWriter};
use axum::response::Response;
use serde_json::{Value, json};

/// An answer as it grows.
#[derive(Default)]
struct ChatAnswerBuilder {
    content: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    tokens: Vec<AnswerToken>,
    end: Option<Box<AnswerEnd>>,
}

/// The response of a request without a stream.
///
/// # Errors
/// What an answer ended with.
pub(super) async fn whole(mut chat: ActiveChat) -> Result<Response, ApiError> {
    let count = chat.conversing.turns.count();
    let mut messages: Vec<ChatAnswerBuilder> = (0..count).map(|_| ChatAnswerBuilder::default()).collect();
    while let Some(said) = chat.conversing.turns.next().await? {
        let (choice, pieces, tokens, end) = parts(said);
        let Some(message) = messages.get_mut(choice) else { continue };
        for piece in pieces {
            match piece {
                ResponsePiece::Content(text) => message.content.push_str(&text),
                ResponsePiece::Reasoning(text) => message.reasoning.push_str(&text),
                ResponsePiece::Call(part) => ToolCall::add(&mut message.calls, part),
            }
        }
        message.tokens.extend(tokens);
        message.end = end.or(message.end.take());
    }
    let choices: Vec<Value> = messages.iter().enumerate().map(|(at, message)| chat.choice(at, message)).collect();
    let mut object = chat.object(WHOLE, choices);
    object["usage"] = usage(chat.conversing.turns.usage());
    if chat.token_ids {
        object["prompt_token_ids"] = json!(chat.conversing.prompt);
    }
    Ok(reply::json(&object))
}

fn parts(said: AnswerUpdate) -> (usize, Vec<ResponsePiece>, Vec<AnswerToken>, Option<Box<AnswerEnd>>) {
    match said {
        AnswerUpdate::Pieces { choice, pieces, tokens } => (choice, pieces, tokens, None),
        AnswerUpdate::Ended { choice, pieces, tokens, end } => (choice, pieces, tokens, Some(end)),
        AnswerUpdate::Prompt { choice, .. } => (choice, Vec::new(), Vec::new(), None),
    }
}

/// What all of OpenAI's answers say of tokens.
pub(super) fn usage(of: Usage) -> Value {
    json!({
        "prompt_tokens": of.prompt,
        "completion_tokens": of.new,
        "total_tokens": of.prompt + of.new,
        "prompt_tokens_details": {"cached_tokens": of.cached},
        "completion_tokens_details": {"reasoning_tokens": of.reasoning},
    })
}

/// The word for an ending.
pub(super) fn finish_reason(end: &AnswerEnd) -> &'static str {
    match end.ending {
        Ending::Stop => "stop",
        Ending::Length => "length",
        Ending::Calls => "tool_calls",
    }
}

/// vLLM's field for the stop that a client asked for.
pub(super) fn stop_reason(end: &AnswerEnd) -> Value {
    match &end.stop {
        Some(StopCause::Text(text)) => Value::from(text.as_str()),
        Some(StopCause::Token(id)) => Value::from(*id),
        None => Value::Null,
    }
}

impl ActiveChat {
    fn call_id(&self, choice: usize, at: usize) -> String {
        format!("call_{}_{choice}_{at}", self.id.trim_start_matches("chatcmpl-"))
    }

    fn finish_reason(&self, end: &AnswerEnd) -> &'static str {
        if self.functions && end.ending == Ending::Calls { "function_call" } else { finish_reason(end) }
    }

    fn object(&self, kind: &str, choices: Vec<Value>) -> Value {
        json!({
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.conversing.turns.lease().name(),
            "system_fingerprint": fingerprint(),
            "choices": choices,
        })
    }

    fn logprobs(&self, tokens: &[AnswerToken]) -> Value {
        let texts = self.conversing.turns.lease().generator().ok().and_then(|generator| generator.model().texts());
        match texts.filter(|_| self.logprobs) {
            Some(texts) => json!({"content": logprobs::entries(&texts.tokenizer, tokens), "refusal": null}),
            None => Value::Null,
        }
    }

    fn choice(&self, at: usize, message: &ChatAnswerBuilder) -> Value {
        let called = !message.calls.is_empty();
        let content = if called && message.content.is_empty() { Value::Null } else { message.content.as_str().into() };
        let mut said = json!({"role": "assistant", "content": content, "refusal": null});
        if let Some(call) = message.calls.first().filter(|_| self.functions) {
            said["function_call"] = json!({"name": call.name, "arguments": call.arguments});
        } else if called {
            let call = |(nth, call): (usize, &ToolCall)| {
                json!({
                    "id": self.call_id(at, nth),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                })
            };
            said["tool_calls"] = message.calls.iter().enumerate().map(call).collect();
        }
        if !message.reasoning.is_empty() {
            said["reasoning_content"] = message.reasoning.as_str().into();
        }
        let mut choice = json!({
            "index": at,
            "message": said,
            "logprobs": self.logprobs(&message.tokens),
            "finish_reason": message.end.as_ref().map(|end| self.finish_reason(end)),
            "stop_reason": message.end.as_ref().map_or(Value::Null, |end| stop_reason(end)),
        });
        if self.token_ids {
            choice["token_ids"] = ids(&message.tokens);
        }
        choice
    }

    /// A part of a stream.
    fn part(&self, choice: usize, delta: Value, tokens: &[AnswerToken], end: Option<&AnswerEnd>) -> Value {
        let mut part = json!({
            "index": choice,
            "delta": delta,
            "logprobs": if tokens.is_empty() { Value::Null } else { self.logprobs(tokens) },
            "finish_reason": end.map(|end| self.finish_reason(end)),
        });
        if let Some(end) = end {
            part["stop_reason"] = stop_reason(end);
        }
        if self.token_ids && !tokens.is_empty() {
            part["token_ids"] = ids(tokens);
        }
        let mut object = self.object(PART, vec![part]);
        if self.include_usage {
            object["usage"] = Value::Null;
        }
        object
    }
}

fn ids(tokens: &[AnswerToken]) -> Value {
    tokens.iter().map(|token| Value::from(token.id)).collect()
}

/// What a stream has told of a choice. Put together it says what the whole answer would: `content` is null where there are
/// calls and no text, as OpenAI has it, and a text otherwise, be it empty because the answer was cut before it.
#[derive(Default)]
struct ToldChoice {
    begun: bool,
    /// Whether `content` was a text, which may be empty.
    text: bool,
    /// Calls that have begun.
    calls: usize,
}

impl ToldChoice {
    /// What says whose answer it is, in front of its first piece.
    fn begin(&mut self, first: Option<&ResponsePiece>) -> Option<Value> {
        if std::mem::replace(&mut self.begun, true) {
            return None;
        }
        // Behind thoughts there may be calls alone.
        self.text = matches!(first, None | Some(ResponsePiece::Content(_)));
        Some(json!({"role": "assistant", "content": if self.text { Value::from("") } else { Value::Null }}))
    }

    /// What is left to say at the end.
    fn last(&self) -> Value {
        if self.text || self.calls > 0 { json!({}) } else { json!({"content": ""}) }
    }
}

/// Writes the stream of a request.
///
/// # Errors
/// [`Gone`].
pub(super) async fn stream(mut chat: ActiveChat, writer: SseWriter) -> Result<(), Gone> {
    let mut told: Vec<ToldChoice> = (0..chat.conversing.turns.count()).map(|_| ToldChoice::default()).collect();
    loop {
        let said = match chat.conversing.turns.next_for(&writer).await? {
            Ok(Some(said)) => said,
            Ok(None) => break,
            Err(error) => return writer.data(&error.openai()).await,
        };
        let (choice, pieces, tokens, end) = parts(said);
        let Some(of_choice) = told.get_mut(choice) else { continue };
        if let Some(delta) = of_choice.begin(pieces.first()) {
            let mut part = chat.part(choice, delta, &[], None);
            if chat.token_ids {
                part["prompt_token_ids"] = json!(chat.conversing.prompt);
            }
            writer.data(&part).await?;
        }
        // Tokens go with the first piece that they made known.
        let mut tokens = Some(tokens);
        for piece in pieces {
            let Some(delta) = chat.delta(choice, piece, of_choice) else { continue };
            writer.data(&chat.part(choice, delta, &tokens.take().unwrap_or_default(), None)).await?;
        }
        if let Some(end) = end {
            let tokens = tokens.take().unwrap_or_default();
            writer.data(&chat.part(choice, of_choice.last(), &tokens, Some(&end))).await?;
        }
    }
    if chat.include_usage {
        let mut last = chat.object(PART, Vec::new());
        last["usage"] = usage(chat.conversing.turns.usage());
        writer.data(&last).await?;
    }
    writer.done().await
}

impl ActiveChat {
    /// What a piece adds to a choice; nothing where a call ends.
    fn delta(&self, choice: usize, piece: ResponsePiece, told: &mut ToldChoice) -> Option<Value> {
        Some(match piece {
            ResponsePiece::Content(text) => {
                told.text = true;
                json!({"content": text})
            }
            ResponsePiece::Reasoning(text) => json!({"reasoning_content": text}),
            ResponsePiece::Call(CallPart::Begin(name)) => {
                let (at, id) = (told.calls, self.call_id(choice, told.calls));
                told.calls += 1;
                let function = json!({"name": name, "arguments": ""});
                if self.functions {
                    return (at == 0).then(|| json!({"function_call": function}));
                }
                json!({"tool_calls": [{"index": at, "id": id, "type": "function", "function": function}]})
            }
            ResponsePiece::Call(CallPart::Arguments(text)) => {
                let at = told.calls.checked_sub(1)?;
                if self.functions {
                    return (at == 0).then(|| json!({"function_call": {"arguments": text}}));
                }
                json!({"tool_calls": [{"index": at, "function": {"arguments": text}}]})
            }
            ResponsePiece::Call(CallPart::End) => return None,
        })
    }
}
