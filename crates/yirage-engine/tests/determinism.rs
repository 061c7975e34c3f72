//! Same bytes out: tokens and logits of a request do not depend on threads, chunk size, batch, cached prefixes or
//! preemption. Random schedules; every request is compared bit for bit with its run alone.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything, and says what it ran

mod golden_support;

use golden_support::{engine_with, options, shared};
use std::collections::HashMap;
use std::path::Path;
use yirage_engine::sampling::SamplingParams;
use yirage_engine::scheduler::{LogitsWanted, SeqId};
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::OpenOptions;
use yirage_plan::Precision;

/// splitmix64, so that a failing seed can be run again.
struct Rng(u64);

impl Rng {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

/// What a request gave: its tokens, and the bits of its logits where it wanted them.
#[derive(Clone, PartialEq, Debug, Default)]
struct Output {
    tokens: Vec<u32>,
    logits: Vec<u32>,
}

/// Requests that often begin alike, some greedy, some wanting all logits.
fn requests(rng: &mut Rng, vocabulary: u32) -> Vec<Request> {
    let common: Vec<u32> = (0..70).map(|_| rng.next(u64::from(vocabulary)) as u32).collect();
    (0..6)
        .map(|i| {
            let mut prompt = common[..rng.next(45) as usize].to_vec();
            prompt.extend((0..1 + rng.next(20)).map(|_| rng.next(u64::from(vocabulary)) as u32));
            let all = i % 3 == 2;
            Request {
                prompt,
                max_new_tokens: Some(if all { 0 } else { 1 + rng.next(60) as u32 }),
                stop_ids: Vec::new(),
                sampling: SamplingParams::greedy(),
                logits: if all { LogitsWanted::All } else { LogitsWanted::Last },
            }
        })
        .collect()
}

/// Runs requests, each added before a step of its own choosing.
fn run(engine: &mut Engine, requests: &[Request], rng: &mut Rng) -> Vec<Output> {
    let mut of: HashMap<SeqId, usize> = HashMap::new();
    let mut out = vec![Output::default(); requests.len()];
    let (mut next, mut step) = (0, 0);
    while next < requests.len() || !engine.is_idle() {
        while next < requests.len() && (engine.is_idle() || rng.next(3) == 0) {
            of.insert(engine.add(requests[next].clone()).unwrap(), next);
            next += 1;
        }
        step += 1;
        assert!(step < 5000, "no end in sight");
        for event in engine.step().unwrap() {
            match event {
                Event::Token { seq, token, .. } => out[of[&seq]].tokens.push(token),
                Event::Logits { seq, logits, .. } => out[of[&seq]].logits.extend(logits.iter().map(|x| x.to_bits())),
                Event::Hidden { .. } => unreachable!("no hidden states were asked for"),
                Event::Finished { reason, .. } => assert!(!format!("{reason:?}").contains("Error"), "{reason:?}"),
            }
        }
    }
    out
}

fn check(model: &Path, precision: Precision, seeds: u64) -> u64 {
    let base = EngineOptions { context: Some(128), ..options(precision) };
    let alone = EngineOptions { max_seqs: 1, prefix_cache: false, chunk: 128, ..base.clone() };
    let mut preempted = 0;
    for seed in 0..seeds {
        let mut rng = Rng(seed * 7 + 1);
        let threads = |n: u64| OpenOptions { threads: Some(n as usize), isa: None };
        let mut solo = engine_with(model, &alone, &threads(1));
        let requests = requests(&mut rng, solo.facts().vocabulary);
        let want: Vec<Output> =
            requests.iter().flat_map(|r| run(&mut solo, std::slice::from_ref(r), &mut Rng(0))).collect();
        let mixed = EngineOptions {
            max_seqs: 1 + rng.next(6) as u32,
            chunk: [7, 16, 33, 64][rng.next(4) as usize],
            logit_rows: 8 + rng.next(60) as u32,
            cache_seqs: 1,
            prefix_cache: rng.next(4) > 0,
            ..base.clone()
        };
        let workers = 1 + rng.next(8);
        let mut engine = engine_with(model, &mixed, &threads(workers));
        let got = run(&mut engine, &requests, &mut rng);
        preempted += engine.stats().preemptions;
        assert_eq!(got, want, "{} seed {seed}, {workers} threads, {mixed:?}", model.display());
    }
    println!("{}: {seeds} schedules, {preempted} preemptions", model.display());
    preempted
}

#[test]
fn stories_f32_and_q8_0() {
    let Some(folder) = shared("models/stories260K") else { return };
    let mut preempted = 0;
    for precision in [Precision::Exact, Precision::Fast] {
        preempted += check(&folder.join("stories260K-f32.gguf"), precision, 6);
        preempted += check(&folder.join("stories260K-q8_0.gguf"), precision, 6);
    }
    assert!(preempted > 0, "no schedule was tight enough to preempt");
}

#[test]
fn windows_experts_and_latent_caches() {
    let Some(folder) = shared("tinyrandom") else { return };
    for model in ["mistral-swa", "gemma3", "gptoss", "qwen3moe", "deepseek-v3"] {
        check(&folder.join(model), Precision::Fast, 3);
    }
}

#[test]
fn a_real_model() {
    let Some(model) = golden_support::large("smollm2-135m-instruct-q4_1.gguf") else { return };
    check(&model, Precision::Fast, 1);
}
