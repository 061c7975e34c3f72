//! Answers of /v1/completions, whole and in parts.

use super::active::{ActiveCompletions, fingerprint};
use super::chat_answer::{finish_reason, stop_reason, usage};
use super::logprobs::LogprobLists;
use crate::error::ApiError;
use crate::generate::{AnswerEnd, AnswerToken, AnswerUpdate};
use crate::reply;
use crate::response_parser::ResponsePiece;
use crate::sse::{Gone, SseWriter};
use axum::response::Response;
use serde_json::{Value, json};
use yirage_session::TextProcessor;

/// An answer as it grows: what was not given out yet.
#[derive(Default)]
struct CompletionText {
    text: String,
    lists: LogprobLists,
    ids: Vec<u32>,
    end: Option<Box<AnswerEnd>>,
}

/// The response of a request without a stream.
///
/// # Errors
/// What an answer ended with.
pub(super) async fn whole(mut of: ActiveCompletions) -> Result<Response, ApiError> {
    let mut texts = of.initial_texts();
    while let Some(said) = of.turns.next().await? {
        of.add(&mut texts, said);
    }
    let choices: Vec<Value> = texts.iter_mut().enumerate().map(|(at, text)| of.choice(at, text)).collect();
    let mut object = of.object(choices);
    object["usage"] = usage(of.turns.usage());
    Ok(reply::json(&object))
}

/// Writes the stream of a request.
///
/// # Errors
/// [`Gone`].
pub(super) async fn stream(mut of: ActiveCompletions, writer: SseWriter) -> Result<(), Gone> {
    let mut texts = of.initial_texts();
    loop {
        let said = match of.turns.next_for(&writer).await? {
            Ok(Some(said)) => said,
            Ok(None) => break,
            Err(error) => return writer.data(&error.openai()).await,
        };
        // What is known of the prompt goes with the first piece behind it.
        let known = matches!(said, AnswerUpdate::Prompt { .. });
        let choice = of.add(&mut texts, said);
        let Some(text) = texts.get_mut(choice).filter(|_| !known) else { continue };
        let choice = of.choice(choice, text);
        let mut object = of.object(vec![choice]);
        if of.include_usage {
            object["usage"] = Value::Null;
        }
        writer.data(&object).await?;
    }
    if of.include_usage {
        let mut last = of.object(Vec::new());
        last["usage"] = usage(of.turns.usage());
        writer.data(&last).await?;
    }
    writer.done().await
}

impl ActiveCompletions {
    fn texts(&self) -> Option<&TextProcessor> {
        self.turns.lease().generator().ok()?.model().texts()
    }

    /// The answers, with the prompt in front where that is wanted.
    fn initial_texts(&self) -> Vec<CompletionText> {
        let one = |at: usize| {
            let mut text = CompletionText::default();
            let prompt = self.prompts.get(at / self.n.max(1)).filter(|_| self.echo);
            if let Some(prompt) = prompt {
                text.text.clone_from(&prompt.text);
                if let (Some(&first), Some(texts), true) = (prompt.ids.first(), self.texts(), self.logprobs) {
                    text.lists = LogprobLists::of_prompt(prompt.hidden);
                    text.lists.first(&texts.tokenizer, first);
                }
            }
            text
        };
        (0..self.turns.count()).map(one).collect()
    }

    /// Adds what was said to its answer, whose number it gives.
    fn add(&self, texts: &mut [CompletionText], said: AnswerUpdate) -> usize {
        let (choice, pieces, tokens, end) = match said {
            AnswerUpdate::Pieces { choice, pieces, tokens } => (choice, pieces, tokens, None),
            AnswerUpdate::Ended { choice, pieces, tokens, end } => (choice, pieces, tokens, Some(end)),
            AnswerUpdate::Prompt { choice, logprobs } => {
                if let (Some(text), Some(of)) = (texts.get_mut(choice), self.texts()) {
                    text.lists.add_of_prompt(&of.tokenizer, &logprobs);
                }
                return choice;
            }
        };
        let Some(text) = texts.get_mut(choice) else { return choice };
        for piece in pieces {
            if let ResponsePiece::Content(more) = piece {
                text.text.push_str(&more);
            }
        }
        self.add_tokens(text, &tokens);
        text.end = end.or(text.end.take());
        choice
    }

    fn add_tokens(&self, text: &mut CompletionText, tokens: &[AnswerToken]) {
        text.ids.extend(tokens.iter().map(|token| token.id));
        if let Some(of) = self.texts().filter(|_| self.logprobs) {
            tokens
                .iter()
                .filter_map(|token| token.logprobs.as_ref())
                .for_each(|one| text.lists.add(&of.tokenizer, one));
        }
    }

    /// What came of an answer since the last call.
    fn choice(&self, at: usize, text: &mut CompletionText) -> Value {
        let mut choice = json!({
            "index": at,
            "text": std::mem::take(&mut text.text),
            "logprobs": if self.logprobs { text.lists.take() } else { Value::Null },
            "finish_reason": text.end.as_ref().map(|end| finish_reason(end)),
            "stop_reason": text.end.as_ref().map_or(Value::Null, |end| stop_reason(end)),
        });
        if self.token_ids {
            choice["token_ids"] = json!(std::mem::take(&mut text.ids));
            choice["prompt_token_ids"] = json!(self.prompts.get(at / self.n.max(1)).map(|prompt| &prompt.ids));
        }
        choice
    }

    fn object(&self, choices: Vec<Value>) -> Value {
        json!({
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.turns.lease().name(),
            "system_fingerprint": fingerprint(),
            "choices": choices,
        })
    }
}
