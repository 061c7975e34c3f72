//! Constraints: what a grammar allows is sampled and nothing else, with guesses and without, alone and beside others.

use crate::golden_support::engine;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use yirage_engine::sampling::{Constraint, SamplingParams, TokenMask};
use yirage_engine::scheduler::{FinishReason, SeqId, SequenceUsage};
use yirage_engine::{Engine, EngineOptions, Event, Request, Speculation, SpeculationControl};
use yirage_plan::Precision;
use yirage_testkit::tiny;

/// What a rule allows behind some tokens.
type Rule = fn(&[u32]) -> Vec<u32>;

/// What a constraint was asked.
#[derive(Clone, Debug, Default)]
struct Asked {
    accepted: Vec<u32>,
    fills: usize,
    rolled_back: usize,
}

/// A constraint that follows a rule and writes down what it is asked.
struct Following {
    rule: Rule,
    asked: Arc<Mutex<Asked>>,
}

impl Constraint for Following {
    fn fill(&mut self, allowed: &mut TokenMask) {
        let mut asked = self.asked.lock().unwrap();
        asked.fills += 1;
        assert!((0..300).all(|token| !allowed.allows(token)), "it begins with nothing");
        (self.rule)(&asked.accepted).into_iter().for_each(|token| allowed.allow(token));
    }

    fn accept(&mut self, token: u32) {
        let mut asked = self.asked.lock().unwrap();
        assert!((self.rule)(&asked.accepted).contains(&token), "{token} behind {:?}", asked.accepted);
        asked.accepted.push(token);
    }

    fn roll_back(&mut self, tokens: usize) {
        let mut asked = self.asked.lock().unwrap();
        asked.rolled_back += tokens;
        let left = asked.accepted.len().checked_sub(tokens).unwrap();
        asked.accepted.truncate(left);
    }
}

/// Odd tokens behind even ones and the other way round.
fn alternating(accepted: &[u32]) -> Vec<u32> {
    let odd = accepted.last().is_some_and(|last| last % 2 == 0);
    (3..200).filter(|token| (token % 2 == 1) == odd).collect()
}

/// The same four tokens over and over, and then two others to choose from.
fn going_round(accepted: &[u32]) -> Vec<u32> {
    if accepted.len() % 23 < 20 { vec![10 + accepted.len() as u32 % 4] } else { vec![50, 60] }
}

/// Anything, five times.
fn five(accepted: &[u32]) -> Vec<u32> {
    if accepted.len() < 5 { (0..250).collect() } else { Vec::new() }
}

struct Output {
    tokens: Vec<u32>,
    reason: FinishReason,
    usage: SequenceUsage,
}

fn run_all(engine: &mut Engine) -> HashMap<SeqId, Output> {
    let (mut tokens, mut out) = (HashMap::<SeqId, Vec<u32>>::new(), HashMap::new());
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            match event {
                Event::Token { seq, token, .. } => tokens.entry(seq).or_default().push(token),
                Event::Finished { seq, reason, usage, .. } => {
                    let tokens = tokens.remove(&seq).unwrap_or_default();
                    out.insert(seq, Output { tokens, reason, usage });
                }
                _ => {}
            }
        }
    }
    out
}

fn load(speculation: Speculation) -> Engine {
    let options =
        EngineOptions { precision: Precision::Exact, context: Some(128), max_seqs: 4, ..EngineOptions::default() };
    engine(&tiny::model("llama"), &EngineOptions { speculation, ..options })
}

fn guessing() -> Speculation {
    Speculation { most: 8, control: SpeculationControl::Most, ..Speculation::lookup() }
}

/// Adds a constrained request; what its constraint is asked.
fn add(engine: &mut Engine, request: Request, rule: Rule) -> (SeqId, Arc<Mutex<Asked>>) {
    let asked = Arc::new(Mutex::new(Asked::default()));
    let constraint = Box::new(Following { rule, asked: asked.clone() });
    (engine.add_constrained(request, constraint).unwrap(), asked)
}

/// Greedy, drawn, and restricted by lists besides.
fn requests() -> [Request; 3] {
    let prompt: Vec<u32> = (0..40).map(|i| 10 + i % 4).collect();
    let drawn = SamplingParams { temperature: 1.3, seed: 5, repetition_penalty: 1.1, ..SamplingParams::default() };
    let plain = Request::greedy(prompt, 60);
    let bad_words = vec![vec![3], vec![60, 60]];
    [plain.clone(), Request { sampling: drawn, ..plain.clone() }, Request { bad_words, ..plain }]
}

#[test]
fn every_token_is_one_that_was_allowed() {
    for speculation in [Speculation::default(), guessing()] {
        let mut engine = load(speculation);
        let added = requests().map(|request| add(&mut engine, request, alternating));
        let out = run_all(&mut engine);
        for (seq, asked) in added {
            let (output, asked) = (&out[&seq], asked.lock().unwrap());
            assert_eq!((&asked.accepted, output.tokens.len()), (&output.tokens, 60));
            assert!(output.tokens.windows(2).all(|pair| pair[0] % 2 != pair[1] % 2), "{:?}", output.tokens);
            assert!(!output.tokens.contains(&0));
        }
    }
}

#[test]
fn guesses_change_no_constrained_token_and_each_row_is_asked_for() {
    for (rule, guessed_well) in [(going_round as Rule, true), (alternating, false)] {
        for request in requests() {
            let of = |speculation| {
                let mut engine = load(speculation);
                // Somebody unconstrained beside it.
                engine.add(Request::greedy(vec![9, 8, 7], 30)).unwrap();
                let (seq, asked) = add(&mut engine, request.clone(), rule);
                let output = run_all(&mut engine).remove(&seq).unwrap();
                let asked = asked.lock().unwrap().clone();
                (output, asked)
            };
            let ((plain, once), (guessed, often)) = (of(Speculation::default()), of(guessing()));
            assert_eq!((&plain.tokens, &plain.reason), (&guessed.tokens, &guessed.reason));
            assert_eq!((&once.accepted, once.fills, once.rolled_back), (&plain.tokens, plain.tokens.len(), 0));
            assert_eq!(often.accepted, guessed.tokens);
            let usage = guessed.usage;
            assert!((usage.accepted..=usage.drafted).contains(&often.rolled_back), "{usage:?} {often:?}");
            if guessed_well {
                assert!(usage.accepted > 20 && usage.accepted < usage.drafted, "{usage:?}");
            }
        }
    }
}

#[test]
fn what_allows_nothing_ends_its_own_sequence_alone() {
    let alone = {
        let mut engine = load(Speculation::default());
        let seq = engine.add(Request::greedy(vec![9, 8, 7], 30)).unwrap();
        run_all(&mut engine).remove(&seq).unwrap().tokens
    };
    for speculation in [Speculation::default(), guessing()] {
        let mut engine = load(speculation);
        let beside = engine.add(Request::greedy(vec![9, 8, 7], 30)).unwrap();
        let (seq, _) = add(&mut engine, requests()[0].clone(), five);
        let (at_once, _) = add(&mut engine, requests()[0].clone(), |_| Vec::new());
        let out = run_all(&mut engine);
        assert_eq!((out[&seq].tokens.len(), &out[&seq].reason), (5, &FinishReason::NothingAllowed));
        assert_eq!((out[&at_once].tokens.len(), &out[&at_once].reason), (0, &FinishReason::NothingAllowed));
        assert_eq!(out[&beside].tokens, alone);
    }
}

/// A constraint and lists that leave nothing together end the sequence too.
#[test]
fn lists_and_constraint_are_both_kept() {
    let mut engine = load(Speculation::default());
    let request = Request { allowed_tokens: Some(vec![4, 6, 7]), ..requests()[0].clone() };
    let (seq, asked) = add(&mut engine, request, |accepted| if accepted.len() < 3 { vec![4, 5] } else { vec![5] });
    let out = run_all(&mut engine);
    assert_eq!((&out[&seq].tokens[..], &out[&seq].reason), (&[4, 4, 4][..], &FinishReason::NothingAllowed));
    assert_eq!(asked.lock().unwrap().fills, 4);
}

/// Bits behind the last token of the vocabulary allow nothing.
#[test]
fn what_a_mask_allows_beyond_the_vocabulary_is_no_token() {
    struct Beyond(u32);
    impl Constraint for Beyond {
        fn fill(&mut self, allowed: &mut TokenMask) {
            allowed.words_mut().fill(u32::MAX);
            (0..self.0).for_each(|token| allowed.forbid(token));
            allowed.allow(u32::MAX);
        }
        fn accept(&mut self, token: u32) {
            panic!("{token} was allowed");
        }
        fn roll_back(&mut self, _: usize) {}
    }
    let mut engine = load(Speculation::default());
    let beyond = Beyond(engine.facts().vocabulary);
    let seq = engine.add_constrained(requests()[0].clone(), Box::new(beyond)).unwrap();
    assert_eq!(run_all(&mut engine)[&seq].reason, FinishReason::NothingAllowed);
}
