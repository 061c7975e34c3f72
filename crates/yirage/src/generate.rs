//! One answer: asked for, read to its end, and its times.

use crate::failure::CliFailure;
use crate::interrupt::Interrupt;
use serde::Serialize;
use std::task::Poll;
use std::time::Duration;
use yirage_engine::sampling::SamplingParams;
use yirage_engine::scheduler::FinishReason;
use yirage_engine::{Engine, Request};
use yirage_hal::SelectionReason;
use yirage_ir::Dims;
use yirage_plan::ExecutorKind;
use yirage_session::{FinishedAnswer, Job, ModelHandle, PlacedPicture, SessionEvent};

/// New tokens at most where nobody says a number.
pub(crate) const DEFAULT_MAX_TOKENS: u32 = 512;

/// How long an answer may say nothing before somebody looks for an interrupt.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What to generate.
pub(crate) struct GenerationJob {
    /// Token ids of the prompt.
    pub(crate) prompt: Vec<u32>,
    /// Pictures in it.
    pub(crate) pictures: Vec<PlacedPicture>,
    /// New tokens at most; `None` is [`DEFAULT_MAX_TOKENS`] or what the context leaves.
    pub(crate) max_tokens: Option<u32>,
    /// Ids that end the text.
    pub(crate) stop_ids: Vec<u32>,
    /// Strings that end the text.
    pub(crate) stops: Vec<String>,
    /// How tokens are chosen.
    pub(crate) sampling: SamplingParams,
}

/// What came of it.
pub(crate) struct GeneratedAnswer {
    /// All sampled tokens, one that ended the text included.
    pub(crate) tokens: Vec<u32>,
    /// The text, `None` without a tokenizer.
    pub(crate) text: Option<String>,
    /// How it ended, its counts and times.
    pub(crate) end: FinishedAnswer,
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
    /// `forced`, `measured`, `measuring`, `preferred` where nothing is measured, or `only` where there is nothing to choose.
    why: &'static str,
    /// Its time over the other's, once measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

/// How the engine runs its plans now.
fn executors(engine: &Engine) -> Vec<ChosenExecutor> {
    let chosen = |(sizes, kind, why): (Dims, ExecutorKind, SelectionReason)| {
        let (why, ratio) = match why {
            SelectionReason::Only => ("only", None),
            SelectionReason::Preferred => ("preferred", None),
            SelectionReason::Forced => ("forced", None),
            SelectionReason::Measuring { .. } => ("measuring", None),
            SelectionReason::Measured { ratio, .. } => ("measured", Some(ratio)),
        };
        ChosenExecutor { tokens: sizes.tokens, executor: kind.name(), why, ratio }
    };
    engine.executors().into_iter().map(chosen).collect()
}

impl GeneratedAnswer {
    /// The reason in the words of APIs.
    pub(crate) fn finish_reason(&self) -> &'static str {
        match self.end.reason {
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
            prefill_ms: self.end.prefill.as_secs_f64() * 1e3,
            prefill_tokens_per_second: rate(self.end.usage.prompt_tokens, self.end.prefill),
            decode_ms: self.end.decode.as_secs_f64() * 1e3,
            // The first token belongs to the prefill.
            decode_tokens_per_second: rate(self.tokens.len().saturating_sub(1), self.end.decode),
            drafted: self.end.usage.drafted,
            accepted: self.end.usage.accepted,
            verified_steps: self.end.usage.verifications,
            speculation_gain: self.end.gain,
        }
    }

    /// One line of statistics; `guesses` has those of guessed tokens as well.
    pub(crate) fn summary(&self, guesses: bool) -> String {
        let t = self.timings(0.0);
        let guessed = match self.end.gain {
            Some(gain) if guesses && t.verified_steps > 0 => {
                let (right, all, steps) = (t.accepted, t.drafted, t.verified_steps);
                format!("{right} of {all} guesses right in {steps} steps, about {gain:.2} times as fast; ")
            }
            _ => String::new(),
        };
        format!(
            "{} prompt tokens ({} cached) in {:.0} ms, {:.1}/s; {} tokens in {:.0} ms, {:.1}/s; {guessed}{}",
            self.end.usage.prompt_tokens,
            self.end.usage.cached_tokens,
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
/// [`CliFailure`] for a request that cannot run, and from `show`. A step that fails ends the answer with its reason.
pub(crate) fn generate(
    model: &ModelHandle,
    job: GenerationJob,
    interrupt: &Interrupt,
    show: &mut dyn FnMut(&str) -> Result<(), CliFailure>,
) -> Result<GeneratedAnswer, CliFailure> {
    let left = u64::from(model.facts().context).saturating_sub(job.prompt.len() as u64);
    let max_tokens = job.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS.min(left.max(1) as u32));
    let request = Request { stop_ids: job.stop_ids, sampling: job.sampling, ..Request::greedy(job.prompt, max_tokens) };
    let events = model.submit(Job { stops: job.stops, pictures: job.pictures, ..Job::new(request) })?;
    interrupt.begin();
    let answer = read(events, model.texts().is_some(), interrupt, show);
    interrupt.end();
    let (costs, executors) = model.between_steps(|engine| (engine.step_costs(), executors(engine)))?;
    for cost in costs {
        tracing::debug!(rows = cost.rows, steps = cost.steps, milliseconds = cost.seconds * 1e3, "decoding steps");
    }
    Ok(GeneratedAnswer { executors, ..answer? })
}

/// Reads an answer to its end.
fn read(
    mut events: yirage_session::AnswerEventStream,
    has_text: bool,
    interrupt: &Interrupt,
    show: &mut dyn FnMut(&str) -> Result<(), CliFailure>,
) -> Result<GeneratedAnswer, CliFailure> {
    let (mut tokens, mut text, mut notes) = (Vec::new(), String::new(), Vec::new());
    loop {
        let next = events.next_within(LOOK_UP);
        if interrupt.is_requested() {
            events.cancel();
        }
        let Poll::Ready(next) = next else { continue };
        let unended = || CliFailure::Other("the engine stopped without ending the answer; please report this".into());
        match next.ok_or_else(unended)?? {
            SessionEvent::Token { token, .. } => tokens.push(token),
            SessionEvent::Text(piece) => {
                text.push_str(&piece);
                show(&piece)?;
            }
            SessionEvent::RopeScaled { length, original } => notes.push(rope_note(length, original)),
            SessionEvent::Logits { .. } | SessionEvent::Hidden { .. } | SessionEvent::PromptLogprobs { .. } => {}
            SessionEvent::Finished(end) => {
                return Ok(GeneratedAnswer {
                    tokens,
                    text: has_text.then_some(text),
                    end,
                    notes,
                    executors: Vec::new(),
                });
            }
        }
    }
}

/// What is said of a sequence whose rotary embedding is scaled for its length.
pub(crate) fn rope_note(length: u32, original: u32) -> String {
    format!(
        "rope: the dynamic scaling is computed for a sequence of {length} positions (the model was made for {original}); \
         another limit of tokens gives other numbers"
    )
}
