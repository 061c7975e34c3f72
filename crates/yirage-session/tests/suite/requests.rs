//! Many callers at once: every answer is that of its request alone, whatever comes, goes and fails beside it.
#![allow(clippy::print_stdout)] // says what it ran

use crate::support::{self, Heard, hear, model, on_cpu, on_sim, recipes};
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use yirage_engine::scheduler::FinishReason;
use yirage_engine::{Embedding, EngineError, EngineOptions, Request};
use yirage_model::config::Pooling;
use yirage_session::{AnswerEventStream, Job, SessionError, SessionEvent};
use yirage_testkit::rng::Rng;

/// Callers on threads of their own, each with requests of its own; some go away in the middle of an answer.
fn check(open: &support::Open, seed: u64) {
    let recipes = recipes(&mut Rng::new(seed), 24);
    let alone = model(open, &EngineOptions { max_seqs: 1, prefix_cache: false, ..support::options() });
    let wanted: Vec<Heard> = recipes.iter().map(|recipe| hear(alone.submit(recipe.job()).unwrap())).collect();
    let shared =
        model(open, &EngineOptions { max_seqs: 5, chunk: 16, speculation: support::guessing(), ..support::options() });
    std::thread::scope(|scope| {
        for caller in 0..6 {
            let (shared, recipes, wanted) = (&shared, &recipes, &wanted);
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 100 + caller as u64);
                for i in (caller..recipes.len()).step_by(6) {
                    let mut answer = shared.submit(recipes[i].job()).unwrap();
                    if rng.below(4) == 0 {
                        answer.next().unwrap().unwrap();
                        if rng.below(2) == 0 {
                            continue;
                        }
                        answer.cancel();
                        let end = hear(answer).end;
                        assert!(end == wanted[i].end || end == format!("{:?}", FinishReason::Cancelled), "{end}");
                        continue;
                    }
                    assert_eq!(hear(answer), wanted[i], "job {i} of seed {seed}");
                }
            });
        }
    });
    let engine = shared.stop().unwrap().engine;
    assert!(engine.is_idle());
}

#[test]
fn every_answer_is_that_of_its_request_alone() {
    for seed in 0..3 {
        check(&on_cpu(), seed);
    }
}

#[test]
fn every_answer_is_that_of_its_request_alone_on_an_accelerator() {
    check(&on_sim(), 3);
}

#[test]
fn a_request_that_is_refused_harms_no_other() {
    let model = model(&on_cpu(), &support::options());
    let good = model.submit(Job::new(Request::greedy(vec![1, 5], 8))).unwrap();
    let vocabulary = model.facts().vocabulary;
    let mut bad = model.submit(Job::new(Request::greedy(vec![1, vocabulary], 8))).unwrap();
    let error = bad.next().unwrap().unwrap_err();
    assert!(matches!(error, SessionError::Engine(EngineError::UnknownToken { at: 1, .. })), "{error}");
    assert!(bad.next().is_none());
    let long = model.submit(Job::new(Request::greedy(vec![1; 100_000], 8))).unwrap().next().unwrap().unwrap_err();
    assert!(matches!(long, SessionError::Engine(EngineError::Admission(_))), "{long}");
    assert_eq!(hear(good).tokens.len(), 8);
}

#[test]
fn stop_strings_end_the_text_before_them() {
    let model = model(&on_cpu(), &support::options());
    let prompt = model.texts().unwrap().encode_raw("Once upon a time", None).unwrap();
    let whole = hear(model.submit(Job::new(Request::greedy(prompt.clone(), 40))).unwrap());
    let stop = whole.text[10..14].to_owned();
    let job = Job { stops: vec![stop.clone()], ..Job::new(Request::greedy(prompt, 40)) };
    let cut = hear(model.submit(job).unwrap());
    assert_eq!(cut.text, whole.text[..whole.text.find(&stop).unwrap()]);
    assert_eq!(cut.end, format!("{:?}", FinishReason::StopText));
    assert!(cut.tokens.len() < whole.tokens.len());
    let empty = Job { stops: vec![String::new()], ..Job::new(Request::greedy(vec![1], 4)) };
    assert!(matches!(model.submit(empty).err().unwrap(), SessionError::Stop(_)));
}

#[test]
fn an_engine_that_dies_ends_every_answer_with_the_reason() {
    let model = model(&on_cpu(), &support::options());
    let mut open = model.submit(Job::new(Request::greedy(vec![1, 5], 200))).unwrap();
    open.next().unwrap().unwrap();
    let dying = model.between_steps(|_| -> () { panic!("ordered to") }).unwrap_err();
    assert!(matches!(&dying, SessionError::Gone { why } if why == "ordered to"), "{dying}");
    let error = open.find_map(Result::err).unwrap();
    assert!(matches!(&error, SessionError::Gone { why } if why == "ordered to"), "{error}");
    let refused = model.submit(Job::new(Request::greedy(vec![1, 5], 2))).err().unwrap();
    assert!(matches!(&refused, SessionError::Gone { why } if why == "ordered to"), "{refused}");
    assert_eq!(model.open_jobs(), 0);
}

#[test]
fn a_model_that_is_unloaded_ends_what_runs() {
    let model = model(&on_cpu(), &support::options());
    let mut open = model.submit(Job::new(Request::greedy(vec![1, 5], 200))).unwrap();
    open.next().unwrap().unwrap();
    let loaded = model.stop().unwrap();
    assert!(matches!(open.find_map(Result::err), Some(SessionError::Gone { .. })));
    // It starts again, with what was cancelled forgotten.
    let again = loaded.start().unwrap();
    assert_eq!(hear(again.submit(Job::new(Request::greedy(vec![1, 5], 3))).unwrap()).tokens.len(), 3);
}

#[test]
fn a_reader_need_not_wait() {
    let model = model(&on_cpu(), &support::options());
    let mut answer = model.submit(Job::new(Request::greedy(vec![1, 5], 3))).unwrap();
    let mut tokens = 0;
    loop {
        match answer.next_within(Duration::from_millis(1)) {
            Poll::Pending => {}
            Poll::Ready(None) => break,
            Poll::Ready(Some(event)) => tokens += usize::from(matches!(event.unwrap(), SessionEvent::Token { .. })),
        }
    }
    assert_eq!(tokens, 3);
}

#[test]
fn an_answer_ends_at_its_deadline() {
    let model = model(&on_cpu(), &support::options());
    let job = |deadline| Job { deadline: Some(deadline), ..Job::new(Request::greedy(vec![1, 5], 200)) };
    let over = hear(model.submit(job(Instant::now())).unwrap());
    assert_eq!(over.end, format!("{:?}", FinishReason::Deadline));
    assert!(over.tokens.len() < 200);
    let far = hear(model.submit(job(Instant::now() + Duration::from_secs(3600))).unwrap());
    assert_eq!((far.end, far.tokens.len()), (format!("{:?}", FinishReason::Length), 200));
}

#[test]
fn who_waits_for_a_seat_waits_until_it_is_free() {
    let model = model(&on_cpu(), &EngineOptions { max_seqs: 1, ..support::options() });
    let end = |answer: AnswerEventStream| {
        let found = answer.map(Result::unwrap).find_map(|event| match event {
            SessionEvent::Finished(end) => Some(end),
            _ => None,
        });
        found.unwrap()
    };
    let before = Instant::now();
    let mut holds = model.submit(Job::new(Request::greedy(vec![1, 5], 200))).unwrap();
    holds.next().unwrap().unwrap();
    let never = Job { deadline: Some(Instant::now()), ..Job::new(Request::greedy(vec![1, 5], 200)) };
    let waits = model.submit(Job::new(Request::greedy(vec![1, 6], 4))).unwrap();
    let never = model.submit(never).unwrap();
    let submitted = before.elapsed();
    let (holds, waits, never) = (end(holds), end(waits), end(never));
    let all = before.elapsed();
    // The one takes its seat behind the other's last token, and each part of it is counted once.
    assert!(submitted + waits.queue >= holds.queue + holds.prefill + holds.decode, "{holds:?} {waits:?}");
    assert!(waits.queue + waits.prefill + waits.decode <= all, "{waits:?} {all:?}");
    assert_eq!(waits.usage.new_tokens, 4);
    assert_eq!((never.prefill, never.decode, never.usage.new_tokens), (Duration::ZERO, Duration::ZERO, 0));
}

#[test]
fn logits_without_sampling_and_a_cache_that_is_reset() {
    let model = model(&on_cpu(), &support::options());
    let ids: Vec<u32> = (0..70).map(|i| 3 + i * i % 200).collect();
    let rows = model.forward(ids.clone()).unwrap();
    assert_eq!(rows.len(), ids.len());
    let best =
        |row: &Vec<f32>| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a))).unwrap() as u32;
    let next = hear(model.submit(Job::new(Request::greedy(ids.clone(), 1))).unwrap());
    assert_eq!(next.tokens, [best(&rows[69])]);
    let hits = |model: &yirage_session::ModelHandle| {
        hear(model.submit(Job::new(Request::greedy(ids.clone(), 1))).unwrap());
        model.between_steps(|engine| engine.stats().prefix_hit).unwrap()
    };
    let before = hits(&model);
    let again = hits(&model);
    assert!(again > before, "the prompt was not cached");
    model.reset_cache().unwrap();
    assert_eq!(hits(&model), again, "the cache was not reset");
}

#[test]
fn texts_of_a_model_that_generates_have_vectors_too() {
    let ids: Vec<u32> = (1..20).collect();
    let with = model(&on_cpu(), &EngineOptions { hidden: true, ..support::options() });
    let rows = with.hidden(ids.clone()).unwrap();
    assert_eq!(rows.len(), ids.len());
    let last = Embedding { pooling: Pooling::Last, normalise: false };
    assert_eq!(&with.embed(ids.clone(), last).unwrap(), rows.last().unwrap());
    let mean = with.embed(ids.clone(), Embedding { pooling: Pooling::Mean, normalise: true }).unwrap();
    let length = mean.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    assert!((length - 1.0).abs() < 1e-6 && mean.len() == rows[0].len(), "{length}");
    let without = model(&on_cpu(), &support::options());
    let refused = without.hidden(ids).unwrap_err();
    assert!(matches!(refused, SessionError::Engine(EngineError::NoHiddenStates)), "{refused}");
}

#[test]
fn answers_are_streams() {
    let model = model(&on_cpu(), &support::options());
    let job = || Job::new(Request::greedy(vec![1, 2, 3], 12));
    let wanted = hear(model.submit(job()).unwrap());
    let mut answer = model.submit(job()).unwrap();
    let mut heard = Heard::default();
    while let Some(event) = block_on(|context| Pin::new(&mut answer).poll_next(context)) {
        heard.take(event);
    }
    assert_eq!(heard, wanted);
}

/// Polls on this thread, which sleeps until it is woken.
fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
