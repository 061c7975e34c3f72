//! The dynamic scaling of the rotary embedding: each request is rotated for its own whole length, alone and beside
//! others, and the reference agrees.

use crate::golden_support::{engine, floats, ids, json, options};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use yirage_engine::scheduler::{LogitsWanted, SeqId};
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_plan::Precision;

/// Made for 24 positions.
fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/safetensors/llama-dynamic")
}

fn load() -> Engine {
    engine(&model(), &EngineOptions { context: Some(64), ..options(Precision::Exact) })
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

#[test]
fn requests_of_every_length_agree_with_the_reference_in_one_batch() {
    let golden = json(&model().join("golden.json"));
    let cases = golden["cases"].as_array().unwrap();
    let requests: Vec<Request> = cases.iter().map(|c| all_logits(&ids(&c["ids"]), 0)).collect();
    let results = run(&mut load(), &requests);
    for ((case, request), (rows, scaled)) in cases.iter().zip(&requests).zip(&results) {
        let (want, bound) = (floats(&case["last_logits"]), 1e-4 * case["std"].as_f64().unwrap());
        let worst = rows.last().unwrap().iter().zip(&want).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
        assert!(worst <= bound, "{} ids: {worst:e} of {bound:e}", request.prompt.len());
        let length = request.prompt.len() as u32;
        assert_eq!(*scaled, (length > 24).then_some(length));
    }
}

#[test]
fn the_length_counts_what_will_be_generated_and_separates_cached_beginnings() {
    let prompt: Vec<u32> = (0..40).map(|i| i % 7 + 3).collect();
    let lengths = |new: u32| run(&mut load(), &[all_logits(&prompt, new)]).remove(0);
    let (short, long) = (lengths(1), lengths(10));
    assert_eq!((short.1, long.1), (Some(40), Some(49)));
    assert_ne!(short.0[39], long.0[39], "another length rotates otherwise");
    let unlimited = run(&mut load(), &[Request { max_new_tokens: None, ..all_logits(&prompt, 0) }]).remove(0);
    assert_eq!(unlimited.1, Some(64), "without a limit it is the context");

    // One engine, one after the other: the first one's blocks must not serve the second.
    let mut engine = load();
    for (new, want) in [(1, &short), (10, &long), (1, &short)] {
        assert_eq!(run(&mut engine, &[all_logits(&prompt, new)]).remove(0), *want);
    }
    assert_eq!(
        run(&mut load(), &[all_logits(&prompt[..20], 3)]).remove(0).1,
        None,
        "within what the model was made for"
    );
}
