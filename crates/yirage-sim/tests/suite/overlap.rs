//! Steps submitted before the tokens of the last one are known: the same tokens and ends as one step at a time, whatever
//! arrives, ends or fails when.
#![allow(clippy::print_stdout)] // says what it ran

use std::collections::HashMap;
use std::time::Duration;
use yirage_engine::sampling::SamplingParams;
use yirage_engine::scheduler::{FinishReason, SchedulerStats, SeqId};
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, OpenOptions};
use yirage_model::Checkpoint;
use yirage_sim::{Faults, Settings, Sim};
use yirage_testkit::rng::Rng;
use yirage_testkit::tiny;

/// Tokens of a request, and how it ended.
type Output = (Vec<u32>, String);

fn engine(model: &str, settings: Settings) -> Engine {
    let (device, _) = Sim::with(settings).open(0, &OpenOptions::default()).unwrap();
    let options = EngineOptions { context: Some(96), chunk: 16, max_seqs: 3, ..EngineOptions::default() };
    Engine::load(&Checkpoint::open(tiny::model(model)).unwrap(), device, &options, &mut |_, _| {}).unwrap()
}

/// Requests of which some end by a token, some by their length, and some are drawn; each with the tokens after which the
/// caller ends it.
fn requests(rng: &mut Rng, vocabulary: u32) -> Vec<(Request, Option<usize>)> {
    let mut token = |most: u32| rng.below(u64::from(most)) as u32;
    let request = |i: u32| {
        let prompt = (0..1 + token(30)).map(|_| token(vocabulary)).collect();
        let drawn = SamplingParams { temperature: 0.9, top_k: 12, seed: u64::from(i), ..SamplingParams::default() };
        let sampling = match token(4) {
            0 => SamplingParams::greedy(),
            1 => SamplingParams { logprobs: Some(2), ..drawn },
            2 if i.is_multiple_of(3) => SamplingParams { repetition_penalty: 1.2, ..drawn },
            _ => drawn,
        };
        let stop_ids = if token(2) == 0 { (0..6).map(|_| token(vocabulary)).collect() } else { Vec::new() };
        let ended = (token(3) == 0).then(|| 1 + token(12) as usize);
        (Request { sampling, stop_ids, ..Request::greedy(prompt, 1 + token(24)) }, ended)
    };
    (0..7).map(request).collect()
}

/// Runs the requests, each of which arrives before a step of its own.
fn run(engine: &mut Engine, requests: &[(Request, Option<usize>)], mut arrives: impl FnMut() -> bool) -> Vec<Output> {
    let mut of: HashMap<SeqId, usize> = HashMap::new();
    let mut out = vec![Output::default(); requests.len()];
    let mut next = 0;
    for _ in 0..5000 {
        if next == requests.len() && engine.is_idle() {
            return out;
        }
        while next < requests.len() && (engine.is_idle() || arrives()) {
            of.insert(engine.add(requests[next].0.clone()).unwrap(), next);
            next += 1;
        }
        for event in engine.step().unwrap() {
            note(engine, event, &of, requests, &mut out);
        }
    }
    panic!("no end in sight");
}

fn note(
    engine: &mut Engine,
    event: Event,
    of: &HashMap<SeqId, usize>,
    requests: &[(Request, Option<usize>)],
    out: &mut [Output],
) {
    match event {
        Event::Token { seq, token, .. } => {
            let i = of[&seq];
            assert!(out[i].1.is_empty(), "a token after the end");
            out[i].0.push(token);
            if requests[i].1 == Some(out[i].0.len()) {
                let ended = engine.finish(seq, FinishReason::Cancelled);
                ended.into_iter().for_each(|event| note(engine, event, of, requests, out));
            }
        }
        Event::Finished { seq, reason, usage, .. } => {
            let i = of[&seq];
            assert_eq!(usage.new_tokens, out[i].0.len(), "{reason:?}");
            out[i].1 = format!("{reason:?}");
        }
        _ => {}
    }
}

#[test]
fn tokens_and_ends_are_those_of_one_step_at_a_time() {
    let mut ahead = 0;
    for (i, model) in tiny::NAMES.iter().enumerate().take(6) {
        let mut rng = Rng::new(31 + i as u64);
        let mut alone = engine(model, Settings { in_flight: 1, ..Settings::default() });
        let requests = requests(&mut rng, alone.facts().vocabulary);
        let each = requests.iter().flat_map(|r| run(&mut alone, std::slice::from_ref(r), || false));
        let wanted: Vec<Output> = each.collect();
        assert_eq!(alone.stats().ahead, 0);
        for seed in 1..=3 {
            let delay = Duration::from_micros(30);
            let mut mixed = engine(model, Settings { seed, delay, ..Settings::default() });
            let got = run(&mut mixed, &requests, || rng.below(4) == 0);
            assert_eq!(got, wanted, "{model}, seed {seed}");
            let SchedulerStats { steps, ahead: of, .. } = mixed.stats();
            println!("{model}: {of} of {steps} steps ahead");
            ahead += of;
        }
    }
    assert!(ahead > 200, "{ahead} steps ahead");
}

#[test]
fn what_the_host_decides_runs_one_step_at_a_time() {
    let mut engine = engine(tiny::NAMES[0], Settings::default());
    let sampling = SamplingParams { presence_penalty: 0.5, ..SamplingParams::greedy() };
    let request = Request { sampling, ..Request::greedy(vec![1, 2], 10) };
    run(&mut engine, &[(request, None)], || true);
    assert_eq!(engine.stats().ahead, 0);
}

#[test]
fn a_step_that_fails_ahead_ends_its_sequences_and_no_more() {
    for kernel in (40..1200).step_by(7) {
        let faults = Faults { kernel: Some(kernel), ..Faults::default() };
        let mut engine = engine(tiny::NAMES[0], Settings { faults, ..Settings::default() });
        let requests: Vec<_> = (0..4).map(|i| (Request::greedy(vec![1 + i, 2], 8), None)).collect();
        let got = run(&mut engine, &requests, || false);
        assert!(got.iter().all(|(tokens, end)| tokens.len() == 8 || end.contains("Error")), "{got:?}");
        assert!(got.iter().filter(|(_, end)| end.contains("Error")).count() <= 1, "{got:?}");
    }
}
