//! Restricted and ranked requests on a device that runs beside the host: the same tokens as one step at a time. Lists that
//! the position alone decides run ahead; what the host has to see a token for does not.

use std::collections::HashMap;
use std::time::Duration;
use yirage_engine::sampling::{Constraint, SamplingParams, TokenMask};
use yirage_engine::scheduler::{FinishReason, SeqId};
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Backend, OpenOptions};
use yirage_model::Checkpoint;
use yirage_sim::{Settings, Sim};
use yirage_testkit::rng::Rng;
use yirage_testkit::tiny;

fn engine(settings: Settings) -> Engine {
    let (device, _) = Sim::with(settings).open(0, &OpenOptions::default()).unwrap();
    let options = EngineOptions { context: Some(96), chunk: 16, max_seqs: 3, ..EngineOptions::default() };
    Engine::load(&Checkpoint::open(tiny::model(tiny::NAMES[0])).unwrap(), device, &options, &mut |_, _| {}).unwrap()
}

/// Only tokens of another remainder than the last one's, and none after twenty.
struct Remainders(Vec<u32>);

impl Constraint for Remainders {
    fn fill(&mut self, allowed: &mut TokenMask) {
        let last = self.0.last().copied().filter(|_| self.0.len() < 20);
        let may = |token: &u32| self.0.is_empty() || last.is_some_and(|last| token % 3 != last % 3);
        (3..120).filter(may).for_each(|token| allowed.allow(token));
    }

    fn accept(&mut self, token: u32) {
        self.0.push(token);
    }

    fn roll_back(&mut self, tokens: usize) {
        self.0.truncate(self.0.len() - tokens);
    }
}

/// Whether a request has a constraint.
type Job = (Request, bool);

/// Tokens and ends of jobs, each added before a step of its own.
fn run(engine: &mut Engine, jobs: &[Job], mut arrives: impl FnMut() -> bool) -> Vec<(Vec<u32>, Option<FinishReason>)> {
    let mut of: HashMap<SeqId, usize> = HashMap::new();
    let mut out = vec![(Vec::new(), None); jobs.len()];
    while of.len() < jobs.len() || !engine.is_idle() {
        while of.len() < jobs.len() && (engine.is_idle() || arrives()) {
            let (request, constrained) = jobs[of.len()].clone();
            let constraint = Box::new(Remainders(Vec::new()));
            let seq = if constrained { engine.add_constrained(request, constraint) } else { engine.add(request) };
            of.insert(seq.unwrap(), of.len());
        }
        for event in engine.step().unwrap() {
            match event {
                Event::Token { seq, token, .. } => out[of[&seq]].0.push(token),
                Event::Finished { seq, reason, .. } => out[of[&seq]].1 = Some(reason),
                _ => {}
            }
        }
    }
    out
}

fn jobs(rng: &mut Rng) -> Vec<Job> {
    let mut number = |most: u64| rng.below(most) as u32;
    let job = |i: u64| {
        let prompt = (0..1 + number(30)).map(|_| number(200)).collect();
        let drawn = SamplingParams { temperature: 1.1, seed: i, ..SamplingParams::default() };
        let request = Request {
            sampling: if number(2) == 0 { drawn } else { SamplingParams::greedy() },
            priority: number(3) as i32 - 1,
            key: u64::from(number(2)),
            min_new_tokens: number(8),
            stop_ids: (0..40).map(|_| number(200)).collect(),
            allowed_tokens: (number(3) == 0).then(|| (0..200).step_by(2).collect()),
            bad_words: if number(3) == 0 { vec![vec![4], vec![number(200), number(200)]] } else { Vec::new() },
            ..Request::greedy(prompt, 8 + number(30))
        };
        (request, number(4) == 0)
    };
    (0..9).map(job).collect()
}

#[test]
fn tokens_and_ends_are_those_of_each_request_alone() {
    let mut ahead = 0;
    for seed in 0..6 {
        let mut rng = Rng::new(77 + seed);
        let jobs = jobs(&mut rng);
        let mut alone = engine(Settings { in_flight: 1, ..Settings::default() });
        let each = jobs.iter().flat_map(|job| run(&mut alone, std::slice::from_ref(job), || false));
        let wanted: Vec<_> = each.collect();
        let mut mixed = engine(Settings { seed, delay: Duration::from_micros(30), ..Settings::default() });
        assert_eq!(run(&mut mixed, &jobs, || rng.below(4) == 0), wanted, "seed {seed}");
        ahead += mixed.stats().ahead;
    }
    assert!(ahead > 0, "nothing ran ahead");
}

#[test]
fn the_position_alone_runs_ahead_and_what_stands_before_it_does_not() {
    let of = |request: Request, constrained| {
        let mut engine = engine(Settings::default());
        run(&mut engine, &[(request, constrained)], || true);
        engine.stats().ahead
    };
    let plain = Request::greedy(vec![1, 2], 20);
    let lists = Request { min_new_tokens: 4, stop_ids: vec![2], allowed_tokens: Some(vec![4, 5]), ..plain.clone() };
    assert!(of(plain.clone(), false) > 0 && of(Request { bad_words: vec![vec![4]], ..lists }, false) > 0);
    assert_eq!(of(Request { bad_words: vec![vec![4, 5]], ..plain.clone() }, false), 0);
    assert_eq!(of(Request { prompt_logprobs: Some(0), ..plain.clone() }, false), 0);
    assert_eq!(of(plain, true), 0);
}
