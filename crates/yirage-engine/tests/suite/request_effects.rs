//! Every field of a request does something: a test for each, and what is refused of it. A field without one does not
//! compile, or fails here.

use crate::golden_support::{all_logits, engine, logsumexp};
use std::collections::HashMap;
use std::sync::Arc;
use yirage_engine::limits::{MAX_BAD_WORDS, MAX_LOGPROBS, MAX_SALT_BYTES};
use yirage_engine::sampling::{ParamError, PositionLogprobs, SamplingParams};
use yirage_engine::scheduler::{AdmissionError, FinishReason, LogitsWanted, SeqId, SequenceUsage};
use yirage_engine::{
    CacheSize, EmbeddedError, EmbeddedSpan, EmbeddingRows, Engine, EngineError, EngineOptions, Event, Request,
};
use yirage_plan::Precision;
use yirage_testkit::tiny;

/// The fields named, as text, if they are all that there are.
macro_rules! all_fields {
    ($($field:ident)+) => {{
        let Request { $($field: _),+ } = Request::greedy(Vec::new(), 0);
        [$(stringify!($field)),+]
    }};
}

/// A field, and a check of its effect.
const EFFECTS: &[(&str, fn())] = &[
    ("prompt", prompt_is_read),
    ("embedded", embedded),
    ("max_new_tokens", max_new_tokens),
    ("min_new_tokens", min_new_tokens),
    ("stop_ids", stop_ids),
    ("sampling", sampling),
    ("allowed_tokens", allowed_tokens),
    ("bad_words", bad_words),
    ("logits", logits),
    ("hidden", hidden),
    ("prompt_logprobs", prompt_logprobs),
    ("adapters", crate::adapters::requests_of_one_batch_get_what_each_gets_alone),
    ("cache_salt", cache_salt),
    ("priority", priority),
    ("key", key),
];

#[test]
fn every_field_has_an_effect_test() {
    let fields = all_fields!(prompt embedded max_new_tokens min_new_tokens stop_ids sampling allowed_tokens bad_words logits hidden
        prompt_logprobs adapters cache_salt priority key);
    let tested: Vec<&str> = EFFECTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(tested, fields);
}

#[test]
fn every_field_has_an_effect() {
    EFFECTS.iter().for_each(|(_, effect)| effect());
}

fn base() -> EngineOptions {
    EngineOptions { precision: Precision::Exact, context: Some(128), ..EngineOptions::default() }
}

fn load(options: EngineOptions) -> Engine {
    engine(&tiny::model("llama"), &options)
}

fn prompt(length: u32) -> Vec<u32> {
    (0..length).map(|i| 3 + i * 37 % 200).collect()
}

/// What a request gave.
#[derive(Clone, Debug, Default, PartialEq)]
struct Output {
    tokens: Vec<u32>,
    reason: Option<FinishReason>,
    usage: SequenceUsage,
    logits: Vec<usize>,
    hidden: Vec<usize>,
    prompt: Vec<(usize, PositionLogprobs)>,
}

/// Runs what was added; outputs by sequence, and the order of their ends.
fn drain(engine: &mut Engine) -> (HashMap<SeqId, Output>, Vec<SeqId>) {
    let mut out: HashMap<SeqId, Output> = HashMap::new();
    let mut ends = Vec::new();
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            match event {
                Event::Token { seq, token, .. } => out.entry(seq).or_default().tokens.push(token),
                Event::Logits { seq, position, .. } => out.entry(seq).or_default().logits.push(position),
                Event::Hidden { seq, position, .. } => out.entry(seq).or_default().hidden.push(position),
                Event::PromptLogprobs { seq, position, logprobs } => {
                    out.entry(seq).or_default().prompt.push((position, logprobs));
                }
                Event::Finished { seq, reason, usage, .. } => {
                    let of = out.entry(seq).or_default();
                    (of.reason, of.usage) = (Some(reason), usage);
                    ends.push(seq);
                }
                Event::RopeScaled { .. } => {}
            }
        }
    }
    (out, ends)
}

fn embedded() {
    let mut engine = load(EngineOptions { embedded: true, ..base() });
    let of = |value| {
        let rows = Arc::new(EmbeddingRows::new([value; 32], 64, vec![f32::from(value); 2 * 64]).unwrap());
        Request { embedded: vec![EmbeddedSpan { at: 1, rows }], ..Request::greedy(prompt(9), 12) }
    };
    let plain = run(&mut engine, Request::greedy(prompt(9), 12)).tokens;
    let (one, other) = (run(&mut engine, of(1)).tokens, run(&mut engine, of(200)).tokens);
    assert!(plain != one && one != other);
    let rows = Arc::new(EmbeddingRows::new([0; 32], 3, vec![0.0; 3]).unwrap());
    let narrow = Request { embedded: vec![EmbeddedSpan { at: 1, rows }], ..Request::greedy(prompt(9), 1) };
    let refused = engine.add(narrow);
    assert!(matches!(refused, Err(EngineError::Embedded(EmbeddedError::Width { width: 3, wanted: 64 }))));
}

fn run(engine: &mut Engine, request: Request) -> Output {
    let seq = engine.add(request).unwrap();
    drain(engine).0.remove(&seq).unwrap()
}

fn refused(engine: &mut Engine, request: Request) -> ParamError {
    match engine.add(request) {
        Err(EngineError::Sampling(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn prompt_is_read() {
    let mut engine = load(base());
    let of = |engine: &mut Engine, length| run(engine, Request::greedy(prompt(length), 8)).tokens;
    assert_ne!(of(&mut engine, 9), of(&mut engine, 10));
}

fn max_new_tokens() {
    let mut engine = load(base());
    assert_eq!(run(&mut engine, Request::greedy(prompt(9), 5)).tokens.len(), 5);
    let open = run(&mut engine, Request { max_new_tokens: None, ..Request::greedy(prompt(9), 0) });
    assert_eq!(open.tokens.len(), 128 - 9);
}

fn stop_ids() {
    let mut engine = load(base());
    let free = run(&mut engine, Request::greedy(prompt(9), 10)).tokens;
    let stopped = run(&mut engine, Request { stop_ids: vec![free[2]], ..Request::greedy(prompt(9), 10) });
    let first = free.iter().position(|token| *token == free[2]).unwrap();
    assert_eq!((&stopped.tokens[..], stopped.reason), (&free[..=first], Some(FinishReason::StopId(free[2]))));
}

fn min_new_tokens() {
    let mut engine = load(base());
    let free = run(&mut engine, Request::greedy(prompt(9), 12)).tokens;
    let request = |min_new_tokens| {
        let stop_ids = vec![free[2], 250];
        Request { stop_ids, min_new_tokens, ..Request::greedy(prompt(9), 12) }
    };
    let early = run(&mut engine, request(0)).tokens.len();
    let late = run(&mut engine, request(6));
    assert!(early <= 3 && late.tokens.len() >= 6, "{early} {late:?}");
    assert!(!late.tokens[..6].contains(&free[2]), "{late:?}");
    assert_eq!(refused(&mut engine, request(13)), ParamError::MinAboveMost { min: 13, most: 12 });
    let open = Request { max_new_tokens: None, ..request(120) };
    assert_eq!(refused(&mut engine, open), ParamError::MinAboveMost { min: 120, most: 128 - 9 });
    let all: Vec<u32> = (0..engine.facts().vocabulary).collect();
    let nothing = Request { stop_ids: all, ..request(1) };
    assert!(matches!(refused(&mut engine, nothing), ParamError::NothingAllowed { .. }));
}

fn sampling() {
    let mut engine = load(base());
    let seeded = |seed| SamplingParams { temperature: 2.0, seed, ..SamplingParams::default() };
    let mut of = |seed| run(&mut engine, Request { sampling: seeded(seed), ..Request::greedy(prompt(9), 12) }).tokens;
    assert_ne!(of(1), of(2));
}

fn allowed_tokens() {
    let mut engine = load(base());
    let request = |allowed| Request { allowed_tokens: Some(allowed), ..Request::greedy(prompt(9), 12) };
    let tokens = run(&mut engine, request(vec![8, 5, 5, 99])).tokens;
    assert!(tokens.len() == 12 && tokens.iter().all(|token| [5, 8, 99].contains(token)), "{tokens:?}");
    let vocabulary = engine.facts().vocabulary;
    let unknown =
        ParamError::UnknownToken { field: "allowed_tokens", token: vocabulary, vocabulary: vocabulary as usize };
    assert_eq!(refused(&mut engine, request(vec![3, vocabulary])), unknown);
    assert!(matches!(refused(&mut engine, request(Vec::new())), ParamError::NothingAllowed { .. }));
}

fn bad_words() {
    let mut engine = load(base());
    let free = run(&mut engine, Request::greedy(prompt(9), 12)).tokens;
    let request = |bad_words| Request { bad_words, ..Request::greedy(prompt(9), 12) };
    let last = *prompt(9).last().unwrap();
    let one = run(&mut engine, request(vec![vec![free[0]]])).tokens;
    assert!(!one.contains(&free[0]), "{one:?}");
    let straddling = run(&mut engine, request(vec![vec![last, free[0]]])).tokens;
    assert_ne!(straddling[0], free[0], "it begins in the prompt");
    let two = run(&mut engine, request(vec![vec![free[0], free[1]]])).tokens;
    assert_eq!(two[0], free[0]);
    assert!(two.windows(2).all(|pair| pair != [free[0], free[1]]), "{two:?}");
    let three = run(&mut engine, request(vec![free[1..4].to_vec()])).tokens;
    assert_eq!(three[..3], free[..3]);
    assert!(three.windows(3).all(|some| some != &free[1..4]), "{three:?}");
    let empty = ParamError::BadWordLength { at: 1, tokens: 0 };
    assert_eq!(refused(&mut engine, request(vec![vec![1], Vec::new()])), empty);
    let many = ParamError::TooManyBadWords { count: MAX_BAD_WORDS + 1 };
    assert_eq!(refused(&mut engine, request(vec![vec![1]; MAX_BAD_WORDS + 1])), many);
}

fn logits() {
    let mut engine = load(base());
    let mut of = |logits| run(&mut engine, Request { logits, ..Request::greedy(prompt(5), 2) }).logits;
    assert_eq!(of(None), [0; 0]);
    assert_eq!(of(Some(LogitsWanted::Last)), [4, 5]);
    assert_eq!(of(Some(LogitsWanted::All)), [0, 1, 2, 3, 4, 5]);
}

fn hidden() {
    let mut engine = load(EngineOptions { hidden: true, ..base() });
    let mut of = |hidden, logits| {
        let out = run(&mut engine, Request { hidden, logits, ..Request::greedy(prompt(5), 2) });
        (out.hidden, out.logits)
    };
    let (none, last, all) = (vec![], vec![4, 5], vec![0, 1, 2, 3, 4, 5]);
    assert_eq!(of(None, None), (none.clone(), none.clone()));
    assert_eq!(of(Some(LogitsWanted::Last), None), (last.clone(), none.clone()));
    assert_eq!(of(Some(LogitsWanted::All), Some(LogitsWanted::Last)), (all.clone(), last.clone()));
    assert_eq!(of(Some(LogitsWanted::Last), Some(LogitsWanted::All)), (last, all));
    let without = load(base()).add(Request { hidden: Some(LogitsWanted::Last), ..Request::greedy(prompt(5), 2) });
    assert!(matches!(without, Err(EngineError::NoHiddenStates)), "{without:?}");
}

fn prompt_logprobs() {
    let ids = prompt(40);
    let rows = all_logits(&mut load(base()), &ids);
    let request = || Request { prompt_logprobs: Some(3), ..Request::greedy(ids.clone(), 6) };
    let plain = run(&mut load(base()), Request::greedy(ids.clone(), 6)).tokens;
    let mut of_chunks = [7, 64].map(|chunk| {
        let mut engine = load(EngineOptions { chunk, logit_rows: 16, max_seqs: 2, ..base() });
        run(&mut engine, Request::greedy(ids.clone(), 1));
        engine.add(Request::greedy(prompt(11), 20)).unwrap();
        run(&mut engine, request())
    });
    (of_chunks[0].usage, of_chunks[1].usage) = (SequenceUsage::default(), SequenceUsage::default());
    assert_eq!(of_chunks[0], of_chunks[1], "chunks change nothing");
    let [out, _] = of_chunks;
    assert_eq!((out.tokens, out.prompt.len()), (plain, ids.len() - 1));
    for (at, (position, logprobs)) in out.prompt.iter().enumerate() {
        let (row, sum) = (&rows[at], logsumexp(&rows[at]));
        let close = |token: u32, logprob: f32| (f64::from(row[token as usize]) - sum - f64::from(logprob)).abs() < 1e-4;
        assert_eq!((*position, logprobs.chosen.token), (at + 1, ids[at + 1]));
        assert!(close(logprobs.chosen.token, logprobs.chosen.logprob), "{position}: {logprobs:?}");
        assert!(logprobs.top.iter().all(|top| close(top.token, top.logprob)), "{position}: {logprobs:?}");
        let mut order: Vec<u32> = (0..row.len() as u32).collect();
        order.sort_by(|&a, &b| row[b as usize].total_cmp(&row[a as usize]).then(a.cmp(&b)));
        let top: Vec<u32> = logprobs.top.iter().map(|top| top.token).collect();
        assert_eq!(top, order[..3]);
    }
    let mut engine = load(base());
    let value = MAX_LOGPROBS + 1;
    let error = refused(&mut engine, Request { prompt_logprobs: Some(value), ..request() });
    assert_eq!(error, ParamError::TooManyLogprobs { field: "prompt_logprobs", value });
}

fn cache_salt() {
    let mut engine = load(base());
    let request = |salt: &[u8]| Request { cache_salt: salt.to_vec(), ..Request::greedy(prompt(70), 2) };
    let mut cached = |salt: &[u8]| run(&mut engine, request(salt)).usage.cached_tokens;
    assert_eq!([&b""[..], b"", b"a", b"a", b"b", b"\0", b""].map(&mut cached), [0, 64, 0, 64, 0, 0, 64]);
    let most = engine.add(request(&[7; MAX_SALT_BYTES]));
    assert!(most.is_ok(), "{most:?}");
    let refused = engine.add(request(&[7; MAX_SALT_BYTES + 1]));
    let error = AdmissionError::SaltTooLong { bytes: MAX_SALT_BYTES + 1, most: MAX_SALT_BYTES };
    assert!(matches!(refused, Err(EngineError::Admission(e)) if e == error));
}

/// The order in which requests end that run one after the other.
fn order<const N: usize>(requests: [Request; N]) -> Vec<usize> {
    let mut engine = load(EngineOptions { max_seqs: 1, ..base() });
    let ids = requests.map(|request| engine.add(request).unwrap());
    let place = |seq| ids.iter().position(|id| *id == seq).unwrap();
    drain(&mut engine).1.into_iter().map(place).collect()
}

fn priority() {
    let of = |priority| Request { priority, ..Request::greedy(prompt(5), 2) };
    assert_eq!(order([of(0), of(9), of(-3), of(0)]), [2, 0, 3, 1]);
}

fn key() {
    let of = |key| Request { key, ..Request::greedy(prompt(5), 2) };
    assert_eq!(order([of(4), of(4), of(4), of(7)]), [0, 3, 1, 2]);
}

/// What a caller's clock decides is an end with a reason of its own.
#[test]
fn a_deadline_ends_a_sequence_with_its_reason() {
    let mut engine = load(EngineOptions { max_seqs: 1, cache: CacheSize::Sequences(1), ..base() });
    let runs = engine.add(Request::greedy(prompt(5), 50)).unwrap();
    let waits = engine.add(Request::greedy(prompt(5), 50)).unwrap();
    engine.step().unwrap();
    for seq in [waits, runs] {
        let end = engine.finish(seq, FinishReason::Deadline);
        assert!(matches!(end, Some(Event::Finished { reason: FinishReason::Deadline, .. })), "{end:?}");
    }
    assert!(engine.is_idle());
}
