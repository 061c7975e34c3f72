//! Answers of /v1/responses, whole and in parts.

use super::active::ActiveResponse;
use super::items;
use super::output::{ResponseEvent, ResponseOutput};
use crate::error::ApiError;
use crate::generate::{AnswerEnd, AnswerToken, AnswerUpdate, Ending};
use crate::openai::logprobs;
use crate::reply;
use crate::response_parser::ResponsePiece;
use crate::sse::{Gone, SseWriter};
use crate::store::StoredResponse;
use axum::response::Response;
use serde_json::{Value, json};

fn parts(said: AnswerUpdate) -> (Vec<ResponsePiece>, Vec<AnswerToken>, Option<Box<AnswerEnd>>) {
    match said {
        AnswerUpdate::Pieces { pieces, tokens, .. } => (pieces, tokens, None),
        AnswerUpdate::Ended { pieces, tokens, end, .. } => (pieces, tokens, Some(end)),
        AnswerUpdate::Prompt { .. } => (Vec::new(), Vec::new(), None),
    }
}

/// Whether an answer ended at its limit.
fn is_cut(end: Option<&AnswerEnd>) -> bool {
    end.is_some_and(|end| end.ending == Ending::Length)
}

impl ActiveResponse {
    /// Takes what was said; thoughts and calls have no log-probabilities.
    fn hear(
        &self,
        output: &mut ResponseOutput,
        pieces: Vec<ResponsePiece>,
        tokens: &[AnswerToken],
    ) -> Vec<ResponseEvent> {
        let texts = self.conversing.turns.lease().generator().ok().and_then(|generator| generator.model().texts());
        let said = tokens.iter().filter(|token| !token.thought);
        let mut entries = texts.map(|texts| logprobs::entries(&texts.tokenizer, said)).unwrap_or_default();
        let events = pieces.into_iter().flat_map(|piece| output.push(piece, &mut entries)).collect();
        output.heard(&mut entries);
        events
    }

    pub(super) fn object(&self, status: &str, output: &ResponseOutput, error: Option<&ApiError>) -> Value {
        let mut object = self.echoed.clone();
        let usage = self.conversing.turns.usage();
        let ended = status == "completed" || status == "incomplete";
        let usage = ended.then(|| {
            json!({
                "input_tokens": usage.prompt,
                // Nothing is written because somebody asks for it: what is cached is so of itself.
                "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
                "output_tokens": usage.new,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning},
                "total_tokens": usage.prompt + usage.new,
            })
        });
        let incomplete = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
        for (name, value) in [
            ("id", json!(self.id)),
            ("object", json!("response")),
            ("status", json!(status)),
            ("error", json!(error.map(|error| json!({"code": error.kind(), "message": error.message})))),
            ("incomplete_details", json!(incomplete)),
            ("output", json!(output.items())),
            ("usage", json!(usage)),
        ] {
            object[name] = value;
        }
        object
    }

    /// The response when all was said; it is kept where that is wanted.
    fn ended(&mut self, output: &ResponseOutput, end: Option<&AnswerEnd>) -> Value {
        let object = self.object(if is_cut(end) { "incomplete" } else { "completed" }, output, None);
        if let Some(mut messages) = self.history.take() {
            items::say(&mut messages, output.message());
            let (input, messages) = (self.input.clone(), Some(messages));
            let kept = StoredResponse { response: object.clone(), messages, input, running: None };
            match self.background {
                true => self.app.stored.replace(&self.id, &self.owner, kept),
                false => self.app.stored.keep(&self.id, &self.owner, kept),
            }
        }
        object
    }

    pub(super) fn output(&self) -> ResponseOutput {
        ResponseOutput::new(self.id.trim_start_matches("resp_"))
    }
}

/// The response of a request without a stream.
///
/// # Errors
/// What the answer ended with.
pub(super) async fn whole(mut begun: ActiveResponse) -> Result<Response, ApiError> {
    Ok(reply::json(&computed(&mut begun).await?))
}

/// The response once all was said.
///
/// # Errors
/// What the answer ended with.
pub(super) async fn computed(begun: &mut ActiveResponse) -> Result<Value, ApiError> {
    let (mut output, mut ended) = (begun.output(), None);
    while let Some(said) = begun.conversing.turns.next().await? {
        let (pieces, tokens, end) = parts(said);
        // Whoever does not stream hears of the items alone.
        drop(begun.hear(&mut output, pieces, &tokens));
        ended = end.or(ended);
    }
    output.end(is_cut(ended.as_deref()));
    let mut object = begun.ended(&output, ended.as_deref());
    object["output_text"] = output.text().into();
    Ok(object)
}

/// Events with their numbers.
struct Numbered {
    writer: SseWriter,
    next: u64,
}

impl Numbered {
    async fn event(&mut self, name: &str, mut value: Value) -> Result<(), Gone> {
        value["type"] = name.into();
        value["sequence_number"] = self.next.into();
        self.next += 1;
        self.writer.event(name, &value).await
    }
}

/// Writes the stream of a request.
///
/// # Errors
/// [`Gone`].
pub(super) async fn stream(mut begun: ActiveResponse, writer: SseWriter) -> Result<(), Gone> {
    let (mut output, mut ended) = (begun.output(), None);
    let mut to = Numbered { writer, next: 0 };
    for name in ["response.created", "response.in_progress"] {
        to.event(name, json!({"response": begun.object("in_progress", &output, None)})).await?;
    }
    loop {
        let said = match begun.conversing.turns.next_for(&to.writer).await? {
            Ok(Some(said)) => said,
            Ok(None) => break,
            Err(error) => {
                let failed = json!({"response": begun.object("failed", &output, Some(&error))});
                return to.event("response.failed", failed).await;
            }
        };
        let (pieces, tokens, end) = parts(said);
        for (name, event) in begun.hear(&mut output, pieces, &tokens) {
            to.event(name, event).await?;
        }
        ended = end.or(ended);
    }
    for (name, event) in output.end(is_cut(ended.as_deref())) {
        to.event(name, event).await?;
    }
    let object = begun.ended(&output, ended.as_deref());
    let name = if object["status"] == "completed" { "response.completed" } else { "response.incomplete" };
    to.event(name, json!({"response": object})).await
}
