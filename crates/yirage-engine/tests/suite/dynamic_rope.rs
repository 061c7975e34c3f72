//! Scalings of the rotary embedding by length, dynamic and LongRoPE: each request is rotated for its own whole length, alone
//! and beside others, and the reference agrees.

use crate::golden_support::{engine, floats, ids, json, options};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use yirage_engine::scheduler::{LogitsWanted, SeqId};
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_plan::Precision;

/// Both made for 24 positions: one whose frequencies change with every further one, and one that has a second set of them.
const DYNAMIC: &str = "llama-dynamic";
const LONGROPE: &str = "phi3-longrope";

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/safetensors").join(name)
}

fn load(name: &str) -> Engine {
    engine(&model(name), &EngineOptions { context: Some(64), ..options(Precision::Exact) })
}

/// What became of each request: logits of all positions, and for how many positions it was said to be scaled.
fn run(engine: &mut Engine, requests: &[Request]) -> Vec<(Vec<Vec<f32>>, Option<u32>)> {
    let seqs: HashMap<SeqId, usize> =
        requests.iter().enumerate().map(|(i, r)| (engine.add(r.clone()).unwrap(), i)).collect();
    let mut out = vec![(Vec::new(), None); requests.len()];
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            match event {
                Event::Logits { seq, logits, .. } => out[seqs[&seq]].0.push(logits),
                Event::RopeScaled { seq, length, original } => {
                    assert_eq!(original, 24);
                    out[seqs[&seq]].1 = Some(length);
                }
                _ => {}
            }
        }
    }
    out
}

fn all_logits(prompt: &[u32], new: u32) -> Request {
    Request { logits: Some(LogitsWanted::All), ..Request::greedy(prompt.to_vec(), new) }
}

/// Requests of the golden file in one batch, each with what was said of its length.
fn agree_with_the_reference(name: &str) -> Vec<(u32, Option<u32>)> {
    let golden = json(&model(name).join("golden.json"));
    let cases = golden["cases"].as_array().unwrap();
    let requests: Vec<Request> = cases.iter().map(|c| all_logits(&ids(&c["ids"]), 0)).collect();
    let results = run(&mut load(name), &requests);
    for ((case, request), (rows, _)) in cases.iter().zip(&requests).zip(&results) {
        let (want, bound) = (floats(&case["last_logits"]), 1e-4 * case["std"].as_f64().unwrap());
        let worst = rows.last().unwrap().iter().zip(&want).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
        assert!(worst <= bound, "{} ids: {worst:e} of {bound:e}", request.prompt.len());
    }
    requests.iter().zip(results).map(|(request, (_, scaled))| (request.prompt.len() as u32, scaled)).collect()
}

#[test]
fn requests_of_every_length_agree_with_the_reference_in_one_batch() {
    for (length, scaled) in agree_with_the_reference(DYNAMIC) {
        assert_eq!(scaled, (length > 24).then_some(length));
    }
    let lengths = agree_with_the_reference(LONGROPE);
    assert!(lengths.iter().any(|(length, _)| *length > 24));
    assert!(lengths.iter().all(|(_, scaled)| scaled.is_none()), "the model was trained for both: {lengths:?}");
}

#[test]
fn longrope_separates_short_and_long_sequences_alone() {
    let prompt: Vec<u32> = (0..40).map(|i| i % 7 + 3).collect();
    let alone = |length: usize, new| run(&mut load(LONGROPE), &[all_logits(&prompt[..length], new)]).remove(0).0;
    let (short, long) = (alone(20, 5), alone(20, 6));
    assert_ne!(short[19], long[19], "25 positions are beyond the first 24");
    assert_eq!(alone(40, 1)[..20], long[..20], "all that are beyond are rotated alike");
    let mut engine = load(LONGROPE);
    for (new, want) in [(5, &short), (6, &long), (5, &short)] {
        assert_eq!(run(&mut engine, &[all_logits(&prompt[..20], new)]).remove(0).0, *want);
    }
    // Tokens that the second of two requests of other lengths finds cached.
    let shared = |name: &str| {
        let mut engine = load(name);
        let mut cached = 0;
        for new in [1, 9] {
            engine.add(Request::greedy(prompt.clone(), new)).unwrap();
            while !engine.is_idle() {
                for event in engine.step().unwrap() {
                    if let Event::Finished { usage, .. } = event {
                        cached = usage.cached_tokens;
                    }
                }
            }
        }
        cached
    };
    assert_eq!([LONGROPE, DYNAMIC].map(|name| shared(name) > 0), [true, false]);
}

#[test]
fn the_length_counts_what_will_be_generated_and_separates_cached_beginnings() {
    let prompt: Vec<u32> = (0..40).map(|i| i % 7 + 3).collect();
    let lengths = |new: u32| run(&mut load(DYNAMIC), &[all_logits(&prompt, new)]).remove(0);
    let (short, long) = (lengths(1), lengths(10));
    assert_eq!((short.1, long.1), (Some(40), Some(49)));
    assert_ne!(short.0[39], long.0[39], "another length rotates otherwise");
    let unlimited = run(&mut load(DYNAMIC), &[Request { max_new_tokens: None, ..all_logits(&prompt, 0) }]).remove(0);
    assert_eq!(unlimited.1, Some(64), "without a limit it is the context");

    // One engine, one after the other: the first one's blocks must not serve the second.
    let mut engine = load(DYNAMIC);
    for (new, want) in [(1, &short), (10, &long), (1, &short)] {
        assert_eq!(run(&mut engine, &[all_logits(&prompt, new)]).remove(0), *want);
    }
    assert_eq!(
        run(&mut load(DYNAMIC), &[all_logits(&prompt[..20], 3)]).remove(0).1,
        None,
        "within what the model was made for"
    );
}
