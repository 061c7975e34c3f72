//! Answers of /completion and /infill, whole and in parts.
//!
//! One answer is an object; those to several prompts are a list of such objects whole, and come as parts of one stream that
//! say by `index` whose they are.

use super::active::ActiveLlamaCompletion;
use super::cut::InfillTracker;
use crate::error::ApiError;
use crate::generate::{AnswerEnd, AnswerToken, AnswerUpdate, Ending, StopCause, Turns};
use crate::openai::logprobs::entries_with_ids;
use crate::reply;
use crate::response_parser::ResponsePiece;
use crate::sse::{Gone, SseWriter};
use axum::response::Response;
use serde_json::{Value, json};
use std::time::Duration;

/// What has been said so far, or a part of it.
#[derive(Default)]
struct LlamaProgress {
    text: String,
    ids: Vec<u32>,
    /// What is known of the tokens, where that is wanted.
    probabilities: Vec<Value>,
    /// Until the first token, and from then on.
    waited: Duration,
    spoken: Duration,
}

impl LlamaProgress {
    /// Takes a part that came so long after the request.
    fn heard(&mut self, part: &LlamaProgress, since: Duration) {
        match self.ids.is_empty() {
            true => self.waited = since,
            false => self.spoken = since.saturating_sub(self.waited),
        }
        self.text.push_str(&part.text);
        self.ids.extend_from_slice(&part.ids);
        self.probabilities.extend_from_slice(&part.probabilities);
    }
}

/// An answer on its way.
struct LlamaAnswer {
    seen: LlamaProgress,
    watch: InfillTracker,
    end: Option<Box<AnswerEnd>>,
    /// Whether it has ended, or what comes is no part of it any more.
    over: bool,
}

/// Choice, text and tokens of what was said, and the end where it is one.
fn parts(said: AnswerUpdate) -> (usize, String, Vec<AnswerToken>, Option<Box<AnswerEnd>>) {
    let (choice, pieces, tokens, end) = match said {
        AnswerUpdate::Pieces { choice, pieces, tokens } => (choice, pieces, tokens, None),
        AnswerUpdate::Ended { choice, pieces, tokens, end } => (choice, pieces, tokens, Some(end)),
        AnswerUpdate::Prompt { choice, .. } => return (choice, String::new(), Vec::new(), None),
    };
    let text = |piece| if let ResponsePiece::Content(text) = piece { text } else { String::new() };
    (choice, pieces.into_iter().map(text).collect(), tokens, end)
}

/// The response of a request without a stream.
///
/// # Errors
/// What an answer ended with.
pub(super) async fn whole(of: &ActiveLlamaCompletion, mut turns: Turns) -> Result<Response, ApiError> {
    let mut answers = of.answers(turns.count());
    // What is dropped ends its answer.
    while answers.iter().any(|answer| !answer.over) {
        let Some(said) = turns.next().await? else { break };
        of.hear(&mut answers, said);
    }
    let mut objects = Vec::with_capacity(answers.len());
    for (at, answer) in answers.iter().enumerate() {
        of.note(&answer.seen)?;
        objects.push(of.shown(of.last(at, &answer.seen, answer.end.as_deref())));
    }
    Ok(reply::json(&if objects.len() == 1 { objects.remove(0) } else { objects.into() }))
}

/// Writes the stream of a request.
///
/// # Errors
/// [`Gone`].
pub(super) async fn stream(of: ActiveLlamaCompletion, mut turns: Turns, writer: SseWriter) -> Result<(), Gone> {
    let mut answers = of.answers(turns.count());
    while answers.iter().any(|answer| !answer.over) {
        let said = match turns.next_for(&writer).await? {
            Ok(Some(said)) => said,
            Ok(None) => return Ok(()),
            Err(error) => return writer.data(&error.openai()).await,
        };
        let Some((at, part)) = of.hear(&mut answers, said) else { continue };
        let Some(answer) = answers.get(at) else { continue };
        if answer.over {
            if let Err(error) = of.note(&answer.seen) {
                return writer.data(&error.openai()).await;
            }
            writer.data(&of.shown(of.last_part(at, answer, part))).await?;
            continue;
        }
        let mut object = json!({"index": at, "stop": false, "content": part.text});
        if of.shape.tokens {
            object["tokens"] = json!(part.ids);
        }
        of.add_probabilities(&mut object, part.probabilities);
        writer.data(&object).await?;
    }
    Ok(())
}

/// The response to nothing.
pub(super) fn nothing_whole(of: &ActiveLlamaCompletion) -> Response {
    reply::json(&of.shown(of.last(0, &LlamaProgress::default(), None)))
}

/// The stream of an answer to nothing.
pub(super) async fn nothing(of: ActiveLlamaCompletion, writer: SseWriter) -> Result<(), Gone> {
    writer.data(&of.shown(of.last(0, &LlamaProgress::default(), None))).await
}

/// The value at a path such as `timings/prompt_ms`.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').try_fold(object, |inner, name| inner.get(name))
}

impl ActiveLlamaCompletion {
    fn answers(&self, count: usize) -> Vec<LlamaAnswer> {
        let one =
            |_| LlamaAnswer { seen: LlamaProgress::default(), watch: self.shape.cut.watch(), end: None, over: false };
        (0..count).map(one).collect()
    }

    /// Takes what was said of one of the answers, whose part it gives. What is said of one that is over is nothing.
    fn hear(&self, answers: &mut [LlamaAnswer], said: AnswerUpdate) -> Option<(usize, LlamaProgress)> {
        let (choice, mut text, tokens, end) = parts(said);
        let answer = answers.get_mut(choice).filter(|answer| !answer.over)?;
        let cut = answer.watch.take(&mut text);
        let texts = self.lease.generator().ok().and_then(|generator| generator.model().texts());
        let probabilities = texts.map(|texts| entries_with_ids(&texts.tokenizer, &tokens)).unwrap_or_default();
        let ids = tokens.iter().map(|token| token.id).collect();
        let part = LlamaProgress { text, ids, probabilities, ..LlamaProgress::default() };
        answer.seen.heard(&part, self.began.elapsed());
        answer.over = cut || end.is_some();
        answer.end = end;
        Some((choice, part))
    }

    /// Names what was computed by its slot.
    ///
    /// # Errors
    /// A model that is loaded no more.
    fn note(&self, seen: &LlamaProgress) -> Result<(), ApiError> {
        if let (Some(slot), [prompt]) = (&self.slot, self.prompts.as_slice()) {
            self.lease.generator()?.slots().note(slot.clone(), [prompt, seen.ids.as_slice()].concat());
        }
        Ok(())
    }

    /// An object with the fields that are wanted, under the names by which they were asked for.
    fn shown(&self, object: Value) -> Value {
        let Some(fields) = &self.shape.fields else { return object };
        fields.iter().filter_map(|path| Some((path.clone(), at(&object, path)?.clone()))).collect()
    }

    /// Where nobody asked for them there are none.
    fn add_probabilities(&self, object: &mut Value, probabilities: Vec<Value>) {
        if !probabilities.is_empty() {
            object["completion_probabilities"] = probabilities.into();
        }
    }

    /// The last object of a stream: what all of it came to, and its last part.
    fn last_part(&self, at: usize, answer: &LlamaAnswer, part: LlamaProgress) -> Value {
        let mut object = self.last(at, &answer.seen, answer.end.as_deref());
        object["content"] = part.text.into();
        if self.shape.tokens {
            object["tokens"] = json!(part.ids);
        }
        if let Some(object) = object.as_object_mut() {
            object.remove("completion_probabilities");
        }
        self.add_probabilities(&mut object, part.probabilities);
        object
    }

    /// What the last object of an answer says. An answer without an end was cut off.
    fn last(&self, at: usize, seen: &LlamaProgress, end: Option<&AnswerEnd>) -> Value {
        let prompt = self.prompts.get(at / self.n.max(1)).map_or(0, Vec::len);
        let mut object = json!({
            "index": at,
            "content": seen.text,
            "model": self.lease.entry.name(),
            "stop": true,
            "stop_type": "limit",
            "stopping_word": "",
            "tokens": if self.shape.tokens { json!(seen.ids) } else { json!([]) },
            "tokens_evaluated": prompt,
            "tokens_predicted": seen.ids.len(),
            "tokens_cached": 0,
            "truncated": false,
            "timings": timings((prompt, seen.waited), (seen.ids.len(), seen.spoken)),
        });
        self.add_probabilities(&mut object, seen.probabilities.clone());
        let Some(end) = end else { return object };
        let (finished, word) = (&end.finished, matches!(&end.stop, Some(StopCause::Text(_))));
        let usage = &finished.usage;
        object["stop_type"] = match end.ending {
            Ending::Length => "limit",
            _ if word => "word",
            _ => "eos",
        }
        .into();
        if let Some(StopCause::Text(text)) = &end.stop {
            object["stopping_word"] = text.as_str().into();
        }
        object["tokens_predicted"] = usage.new_tokens.into();
        object["tokens_cached"] = usage.cached_tokens.into();
        let computed = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
        object["timings"] = timings((computed, finished.prefill), (usage.new_tokens, finished.decode));
        object
    }
}

/// Tokens and times of a prompt and of an answer.
fn timings((computed, prefill): (usize, Duration), (new, decode): (usize, Duration)) -> Value {
    let rate = |tokens: usize, seconds: f64| if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
    let (prefill, decode) = (prefill.as_secs_f64(), decode.as_secs_f64());
    json!({
        "prompt_n": computed,
        "prompt_ms": prefill * 1e3,
        "prompt_per_second": rate(computed, prefill),
        "predicted_n": new,
        "predicted_ms": decode * 1e3,
        "predicted_per_second": rate(new.saturating_sub(1), decode),
    })
}
