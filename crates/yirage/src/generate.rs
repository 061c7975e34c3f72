//! One answer: steps of the engine until it ends, with its text as it comes.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use serde::Serialize;
use std::time::{Duration, Instant};
use yirage_engine::sampling::SamplingParams;
use yirage_engine::scheduler::{FinishReason, SeqId, Usage};
use yirage_engine::text::{Emitted, StopMatcher};
use yirage_engine::{Engine, Event, Request};
use yirage_hal::Why;
use yirage_ir::Dims;
use yirage_model::tokenizer::{Detokenizer, Tokenizer};
use yirage_plan::ExecutorKind;

/// New tokens at most where nobody says a number.
pub(crate) const DEFAULT_MAX_TOKENS: u32 = 512;

/// What to generate.
pub(crate) struct Job<'a> {
    /// Token ids of the prompt.
    pub(crate) prompt: Vec<u32>,
    /// New tokens at most; `None` is [`DEFAULT_MAX_TOKENS`] or what the context leaves.
    pub(crate) max_tokens: Option<u32>,
    /// Ids that end the text.
    pub(crate) stop_ids: &'a [u32],
    /// Strings that end the text.
    pub(crate) stops: &'a [String],
    /// How tokens are chosen.
    pub(crate) sampling: SamplingParams,
}

/// What came of it.
pub(crate) struct Answer {
    /// All sampled tokens, one that ended the text included.
    pub(crate) tokens: Vec<u32>,
    /// The text, `None` without a tokenizer.
    pub(crate) text: Option<String>,
    /// Why it ended.
    pub(crate) reason: FinishReason,
    /// From the request to the first token.
    pub(crate) prefill: Duration,
    /// From the first token to the last.
    pub(crate) decode: Duration,
    /// Counts of the engine.
    pub(crate) usage: Usage,
    /// By how much guessing made it faster, as the engine estimates it.
    pub(crate) gain: Option<f64>,
    /// What the user should know of how it was computed.
    pub(crate) notes: Vec<String>,
    /// How each of the model's plans was run.
    pub(crate) executors: Vec<ChosenExecutor>,
}

/// How a plan is run, and why so.
#[derive(Clone, Serialize)]
pub(crate) struct ChosenExecutor {
    /// Tokens of the largest step that the plan takes.
    tokens: u32,
    executor: &'static str,
    /// `forced`, `measured`, `measuring`, or `only` where there is nothing to choose.
    why: &'static str,
    /// Its time over the other's, once measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

/// How the engine runs its plans now.
fn executors(engine: &Engine) -> Vec<ChosenExecutor> {
    let chosen = |(sizes, kind, why): (Dims, ExecutorKind, Why)| {
        let (why, ratio) = match why {
            Why::Only => ("only", None),
            Why::Forced => ("forced", None),
            Why::Measuring { .. } => ("measuring", None),
            Why::Measured { ratio, .. } => ("measured", Some(ratio)),
        };
        ChosenExecutor { tokens: sizes.tokens, executor: kind.name(), why, ratio }
    };
    engine.executors().into_iter().map(chosen).collect()
}

impl Answer {
    /// The reason in the words of APIs.
    pub(crate) fn finish_reason(&self) -> &'static str {
        match self.reason {
            FinishReason::StopId(_) | FinishReason::StopText => "stop",
            FinishReason::Length => "length",
            FinishReason::Cancelled => "cancelled",
            FinishReason::Deadline => "deadline",
            FinishReason::NothingAllowed => "nothing_allowed",
            FinishReason::Error(_) => "error",
        }
    }

    /// Times and rates.
    pub(crate) fn timings(&self, load_ms: f64) -> Timings {
        let rate = |n: usize, time: Duration| if time.is_zero() { 0.0 } else { n as f64 / time.as_secs_f64() };
        Timings {
            load_ms,
            prefill_ms: self.prefill.as_secs_f64() * 1e3,
            prefill_tokens_per_second: rate(self.usage.prompt_tokens, self.prefill),
            decode_ms: self.decode.as_secs_f64() * 1e3,
            // The first token belongs to the prefill.
            decode_tokens_per_second: rate(self.tokens.len().saturating_sub(1), self.decode),
            drafted: self.usage.drafted,
            accepted: self.usage.accepted,
            verified_steps: self.usage.verifications,
            speculation_gain: self.gain,
        }
    }

    /// One line of statistics.
    pub(crate) fn summary(&self) -> String {
        let t = self.timings(0.0);
        let guessed = match self.gain {
            Some(gain) if t.verified_steps > 0 => {
                let (right, all, steps) = (t.accepted, t.drafted, t.verified_steps);
                format!("{right} of {all} guesses right in {steps} steps, about {gain:.2} times as fast; ")
            }
            _ => String::new(),
        };
        format!(
            "{} prompt tokens ({} cached) in {:.0} ms, {:.1}/s; {} tokens in {:.0} ms, {:.1}/s; {guessed}{}",
            self.usage.prompt_tokens,
            self.usage.cached_tokens,
            t.prefill_ms,
            t.prefill_tokens_per_second,
            self.tokens.len(),
            t.decode_ms,
            t.decode_tokens_per_second,
            self.finish_reason()
        )
    }
}

/// Times of one answer. Rates are 0 where there was nothing to measure.
#[derive(Serialize)]
pub(crate) struct Timings {
    load_ms: f64,
    prefill_ms: f64,
    prefill_tokens_per_second: f64,
    decode_ms: f64,
    decode_tokens_per_second: f64,
    /// Guessed tokens that were verified, those that were right, and the steps that took.
    drafted: usize,
    accepted: usize,
    verified_steps: usize,
    /// By how much guessing is estimated to have made the answer's tokens faster; null where it is off.
    speculation_gain: Option<f64>,
}

/// Generates; `show` gets the text piece by piece.
///
/// # Errors
/// [`Failure`] for a request that cannot run, and from `show`. A step that fails ends the answer with its reason.
pub(crate) fn generate(
    engine: &mut Engine,
    tokenizer: Option<&Tokenizer>,
    job: Job<'_>,
    interrupt: &Interrupt,
    show: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<Answer, Failure> {
    let mut text = TextSide::new(tokenizer, &job)?;
    let left = u64::from(engine.facts().context).saturating_sub(job.prompt.len() as u64);
    let max_tokens = job.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS.min(left.max(1) as u32));
    let seq = engine.add(Request {
        stop_ids: job.stop_ids.to_vec(),
        sampling: job.sampling,
        ..Request::greedy(job.prompt, max_tokens)
    })?;
    interrupt.begin();
    let result = steps(engine, seq, interrupt, &mut text, show);
    interrupt.end();
    if result.is_err() {
        engine.finish(seq, FinishReason::Cancelled);
    }
    let mut answer = result?;
    for cost in engine.step_costs() {
        tracing::debug!(rows = cost.rows, steps = cost.steps, milliseconds = cost.seconds * 1e3, "decoding steps");
    }
    answer.executors = executors(engine);
    answer.text = text.finish(show)?;
    Ok(answer)
}

/// What is said of a sequence whose rotary embedding is scaled for its length.
pub(crate) fn rope_note(length: u32, original: u32) -> String {
    format!(
        "rope: the dynamic scaling is computed for a sequence of {length} positions (the model was made for {original}); \
         another limit of tokens gives other numbers"
    )
}

fn steps(
    engine: &mut Engine,
    seq: SeqId,
    interrupt: &Interrupt,
    text: &mut TextSide<'_>,
    show: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<Answer, Failure> {
    let started = Instant::now();
    let (mut first, mut last) = (None, started);
    let mut tokens = Vec::new();
    let mut queue = Vec::new();
    let mut notes = Vec::new();
    loop {
        for event in queue.drain(..) {
            match event {
                Event::Token { token, .. } => {
                    last = Instant::now();
                    first.get_or_insert(last);
                    tokens.push(token);
                    text.push(token, show)?;
                }
                Event::Finished { reason, usage, gain, .. } => {
                    let first = first.unwrap_or_else(Instant::now);
                    let (prefill, decode) = (first - started, last.saturating_duration_since(first));
                    return Ok(Answer {
                        tokens,
                        text: None,
                        reason,
                        prefill,
                        decode,
                        usage,
                        gain,
                        notes,
                        executors: Vec::new(),
                    });
                }
                Event::RopeScaled { length, original, .. } => notes.push(rope_note(length, original)),
                Event::Logits { .. } | Event::Hidden { .. } | Event::PromptLogprobs { .. } => {}
            }
        }
        let end = match () {
            () if interrupt.asked() => Some(FinishReason::Cancelled),
            () if text.stopped => Some(FinishReason::StopText),
            () => None,
        };
        if let Some(event) = end.and_then(|reason| engine.finish(seq, reason)) {
            queue.push(event);
            continue;
        }
        queue = engine.step()?;
        if queue.is_empty() && engine.is_idle() {
            return Err(Failure::Other("the engine stopped without ending the answer; please report this".into()));
        }
    }
}

/// From tokens to shown text.
struct TextSide<'a> {
    stream: Option<(Detokenizer<'a>, StopMatcher)>,
    text: String,
    /// A stop string was found.
    stopped: bool,
}

impl<'a> TextSide<'a> {
    fn new(tokenizer: Option<&'a Tokenizer>, job: &Job<'_>) -> Result<TextSide<'a>, Failure> {
        let matcher = StopMatcher::new(job.stops, job.stop_ids)?;
        // What is skipped here are control tokens; text that merely looks like them stays.
        let stream = tokenizer.map(|t| (t.continuation(true), matcher));
        if stream.is_none() && !job.stops.is_empty() {
            return Err(Failure::Usage("--stop needs text, and the model has no tokenizer".into()));
        }
        Ok(TextSide { stream, text: String::new(), stopped: false })
    }

    fn push(&mut self, token: u32, show: &mut dyn FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
        let Some((detokenizer, matcher)) = &mut self.stream else { return Ok(()) };
        let piece = detokenizer.push(token);
        let emitted = matcher.push(token, &piece);
        self.stopped |= emitted.hit.is_some();
        self.emit(&emitted, show)
    }

    fn finish(mut self, show: &mut dyn FnMut(&str) -> Result<(), Failure>) -> Result<Option<String>, Failure> {
        let Some((detokenizer, mut matcher)) = self.stream.take() else { return Ok(None) };
        let emitted = matcher.finish(&detokenizer.finish());
        self.emit(&emitted, show)?;
        Ok(Some(self.text))
    }

    fn emit(&mut self, emitted: &Emitted, show: &mut dyn FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
        self.text.push_str(&emitted.text);
        if emitted.text.is_empty() { Ok(()) } else { show(&emitted.text) }
    }
}
