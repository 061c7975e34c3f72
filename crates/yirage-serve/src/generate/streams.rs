//! The answers of one request, as one stream of events.

use super::adapters::wanted_adapters;
use super::admission::{QueuedTokens, enter};
use super::params::GenerationParams;
use super::prefill;
use crate::app::App;
use crate::call::RequestContext;
use crate::error::ApiError;
use crate::limits::{FIRST_EVENT, MAX_CHOICES};
use crate::metrics::Ticket;
use crate::models::{Generator, ModelLease};
use futures_core::Stream;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use yirage_engine::Request;
use yirage_engine::sampling::{Constraint, SamplingParams};
use yirage_engine::scheduler::AdmissionError;
use yirage_session::{AnswerEventStream, Job, PlacedPicture, SessionError, SessionEvent};

/// The answers of a request. Dropped, all of them are cancelled.
pub(crate) struct Streams {
    lease: ModelLease,
    answers: Vec<AnswerStream>,
    /// Whose turn it is, so that none is read before all others.
    turn: usize,
    early: VecDeque<(usize, SessionEvent)>,
    started: Instant,
    ticket: Ticket,
    /// The fewest new tokens that the context leaves an answer, where more were asked for.
    clipped: Option<u32>,
}

struct AnswerStream {
    /// None once it has ended.
    answer: Option<AnswerEventStream>,
    last: Option<Instant>,
    /// Its prompt, as long as nothing of the answer has come.
    waiting: Option<QueuedTokens>,
}

/// Makes the grammar of an answer, one for each.
pub(crate) type MakeConstraint<'a> = &'a dyn Fn() -> Option<Box<dyn Constraint>>;

/// The prompts of a request.
#[derive(Clone, Copy)]
pub(crate) struct Prompts<'a> {
    /// The tokens of each.
    ids: &'a [Vec<u32>],
    /// Pictures of the only one.
    pictures: &'a [PlacedPicture],
    /// Whether another server may compute them.
    elsewhere: bool,
}

impl<'a> Prompts<'a> {
    /// Prompts without pictures.
    pub(crate) fn of_tokens(ids: &'a [Vec<u32>]) -> Prompts<'a> {
        Prompts { ids, pictures: &[], elsewhere: true }
    }

    /// A prompt with pictures.
    pub(crate) fn with_pictures(prompt: &'a Vec<u32>, pictures: &'a [PlacedPicture]) -> Prompts<'a> {
        Prompts { ids: std::slice::from_ref(prompt), pictures, elsewhere: true }
    }
}

/// Submits a job for each prompt and choice: those of the first prompt come first.
///
/// # Errors
/// A request that the model cannot take; too many that are open.
pub(crate) fn start(
    app: &App,
    call: &RequestContext,
    held: &ModelLease,
    prompts: Prompts<'_>,
    asked: &GenerationParams,
    marks: &Arc<[u32]>,
    constraint: MakeConstraint<'_>,
) -> Result<Streams, ApiError> {
    let generator = held.generator()?;
    let Prompts { ids: prompts, pictures, elsewhere } = prompts;
    let count = prompts.len().saturating_mul(asked.n as usize);
    if count > MAX_CHOICES {
        let what = format!("{count} answers are asked for, prompts times `n`; {MAX_CHOICES} are taken");
        return Err(ApiError::field("n", what));
    }
    let adapters = wanted_adapters(held, asked)?;
    let waiting = enter(app, held, generator, prompts, count)?;
    let ticket = app.live.enter(&call.id, held.entry.name());
    let mut answers = Vec::with_capacity(count);
    let mut clipped: Option<u32> = None;
    for (prompt, waiting) in prompts.iter().zip(waiting) {
        // The first answer to a prompt has it computed for all of them.
        let mut waiting = Some(waiting);
        let room = remaining_context(generator, prompt)?;
        let most = asked.max_tokens.map(|most| most.min(room));
        if most < asked.max_tokens {
            clipped = Some(clipped.map_or(room, |fewest| fewest.min(room)));
        }
        for choice in 0..asked.n {
            let request = request(app, call, generator, prompt, asked, choice)?;
            let request = Request { max_new_tokens: most, adapters: adapters.clone(), ..request };
            let deadline = app.options.request_time.map(|time| Instant::now() + time);
            let (stops, marks, pictures) = (asked.stops.clone(), marks.clone(), pictures.to_vec());
            let job = Job { request, pictures, stops, marks, constraint: constraint(), deadline };
            if elsewhere && choice == 0 {
                prefill::take(held, generator, &job);
            }
            answers.push(AnswerStream {
                answer: Some(generator.model().submit(job)?),
                last: None,
                waiting: waiting.take(),
            });
        }
    }
    let early = VecDeque::new();
    Ok(Streams { lease: held.clone(), answers, turn: 0, early, started: Instant::now(), ticket, clipped })
}

/// Computes a prompt for another server, with one token that nobody wants: its events, and the salt that the cache has it under.
///
/// # Errors
/// As of [`start`].
pub(crate) fn prefilled(
    app: &App,
    call: &RequestContext,
    held: &ModelLease,
    tokens: Vec<u32>,
    cache_salt: &str,
) -> Result<(Streams, Vec<u8>), ApiError> {
    let suggested = GenerationParams::suggested(held.generator()?.model().generation(), 0);
    let params = GenerationParams {
        sampling: SamplingParams::greedy(),
        max_tokens: Some(1),
        cache_salt: cache_salt.to_owned(),
        ..suggested
    };
    let prompts = Prompts { ids: &[tokens], pictures: &[], elsewhere: false };
    let streams = start(app, call, held, prompts, &params, &Arc::default(), &|| None)?;
    Ok((streams, [&call.caller.salt[..], cache_salt.as_bytes()].concat()))
}

/// New tokens that the context leaves behind a prompt, before anything is queued.
///
/// # Errors
/// A prompt that leaves none.
fn remaining_context(generator: &Generator, prompt: &[u32]) -> Result<u32, ApiError> {
    let context = generator.model().facts().context;
    let (prompt, max_context) = (prompt.len(), context as usize);
    if prompt >= max_context {
        let (max_new, total) = (1, prompt.saturating_add(1));
        let refused = AdmissionError::ExceedsContext { prompt, max_new, total, max_context };
        return Err(yirage_engine::EngineError::Admission(refused).into());
    }
    Ok(context.saturating_sub(u32::try_from(prompt).unwrap_or(u32::MAX)))
}

fn request(
    app: &App,
    call: &RequestContext,
    generator: &Generator,
    prompt: &[u32],
    asked: &GenerationParams,
    choice: u32,
) -> Result<Request, ApiError> {
    let model = generator.model();
    let sampling = SamplingParams { choice, ..asked.sampling.clone() };
    sampling.clone().checked(model.facts().vocabulary as usize)?;
    let mut stop_ids = asked.stop_ids.clone();
    if !asked.ignore_ends {
        stop_ids.extend(model.ends().iter().filter(|id| !asked.stop_ids.contains(id)));
    }
    let mut cache_salt = call.caller.salt.clone();
    cache_salt.extend_from_slice(asked.cache_salt.as_bytes());
    if !asked.cache_prompt {
        // A salt that nobody else has finds nothing.
        cache_salt = [&b"once\0"[..], &app.unique().to_le_bytes()].concat();
    }
    Ok(Request {
        prompt: prompt.to_vec(),
        min_new_tokens: asked.min_tokens,
        stop_ids,
        sampling,
        allowed_tokens: asked.allowed.clone(),
        prompt_logprobs: asked.prompt_logprobs,
        cache_salt,
        key: call.caller.account,
        ..Request::greedy(Vec::new(), 0)
    })
}

impl Streams {
    /// The model that answers.
    pub(crate) fn lease(&self) -> &ModelLease {
        &self.lease
    }

    /// The fewest new tokens that the context leaves an answer, where more were asked for.
    pub(crate) fn clipped(&self) -> Option<u32> {
        self.clipped
    }

    /// How many answers there are.
    pub(crate) fn count(&self) -> usize {
        self.answers.len()
    }

    /// Waits for the first event, but not for ever: a refusal comes at once, a first token may take long.
    ///
    /// # Errors
    /// What an answer ended with.
    pub(crate) async fn first(&mut self) -> Result<(), ApiError> {
        let Ok(next) = tokio::time::timeout(FIRST_EVENT, self.next()).await else { return Ok(()) };
        self.early.extend(next?);
        Ok(())
    }

    /// The next event and the answer it is of; none when all have ended.
    ///
    /// # Errors
    /// What an answer ended with, by which all end.
    pub(crate) async fn next(&mut self) -> Result<Option<(usize, SessionEvent)>, ApiError> {
        if let Some(early) = self.early.pop_front() {
            return Ok(Some(early));
        }
        match poll_fn(|context| self.poll(context)).await {
            None => Ok(None),
            Some((at, Ok(event))) => {
                self.count_event(at, &event);
                Ok(Some((at, event)))
            }
            Some((at, Err(error))) => {
                self.lease.entry.metrics.broke_off(true);
                self.answers.iter_mut().for_each(|one| one.answer = None);
                tracing::warn!(answer = at, error = %error, "an answer ended in an error");
                Err(error.into())
            }
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, Result<SessionEvent, SessionError>)>> {
        let count = self.answers.len();
        let mut open = false;
        for step in 0..count {
            let at = (self.turn + step) % count;
            let Some(one) = self.answers.get_mut(at) else { continue };
            let Some(answer) = one.answer.as_mut() else { continue };
            match Pin::new(answer).poll_next(context) {
                Poll::Ready(Some(event)) => {
                    self.turn = (at + 1) % count;
                    return Poll::Ready(Some((at, event)));
                }
                Poll::Ready(None) => one.answer = None,
                Poll::Pending => open = true,
            }
        }
        if open { Poll::Pending } else { Poll::Ready(None) }
    }

    fn count_event(&mut self, at: usize, event: &SessionEvent) {
        use std::sync::atomic::Ordering;
        let figures = &self.lease.entry.metrics;
        match event {
            SessionEvent::Token { .. } => {
                let now = Instant::now();
                figures.generation_tokens.fetch_add(1, Ordering::Relaxed);
                self.ticket.token();
                if let Some(one) = self.answers.get_mut(at) {
                    one.waiting = None;
                    match one.last.replace(now) {
                        None => figures.first_token.add(now - self.started),
                        Some(last) => figures.between_tokens.add(now - last),
                    }
                }
            }
            SessionEvent::Finished(end) => {
                figures.finished(end);
                // What comes behind the end is nothing.
                if let Some(one) = self.answers.get_mut(at) {
                    (one.answer, one.waiting) = (None, None);
                }
            }
            _ => {}
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        let open = self.answers.iter().filter(|one| one.answer.is_some()).count();
        (0..open).for_each(|_| self.lease.entry.metrics.broke_off(false));
    }
}
