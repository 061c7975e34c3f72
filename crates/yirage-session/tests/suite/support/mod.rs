//! Models and jobs for the tests of this crate.
#![allow(dead_code, unreachable_pub)] // each test file uses its part

use std::sync::Arc;
use std::time::Duration;
use yirage_engine::sampling::{Constraint, SamplingParams, TokenMask};
use yirage_engine::{EngineOptions, Request, Speculation, SpeculationControl};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_model::Checkpoint;
use yirage_session::{AnswerEventStream, Job, LoadedEngine, ModelHandle, SessionError, SessionEvent};
use yirage_sim::{Settings, Sim};
use yirage_testkit::bedtime;
use yirage_testkit::rng::Rng;

/// Opens a device.
pub type Open = Box<dyn Fn() -> Arc<dyn Device>>;

pub fn on_cpu() -> Open {
    Box::new(|| yirage_cpu::Cpu.open(0, &OpenOptions { threads: Some(2), ..OpenOptions::default() }).unwrap().0)
}

pub fn on_sim() -> Open {
    let sim = Sim::with(Settings { seed: 9, delay: Duration::from_micros(20), ..Settings::default() });
    Box::new(move || sim.open(0, &OpenOptions::default()).unwrap().0)
}

pub fn options() -> EngineOptions {
    EngineOptions { context: Some(256), max_seqs: 3, ..EngineOptions::default() }
}

pub fn loaded(device: Arc<dyn Device>, options: &EngineOptions) -> LoadedEngine {
    let checkpoint = Checkpoint::open(bedtime::f32()).unwrap();
    LoadedEngine::load(&checkpoint, device, options, &mut |_, _| {}).unwrap()
}

pub fn model(open: &Open, options: &EngineOptions) -> ModelHandle {
    loaded(open(), options).start().unwrap()
}

/// Guesses whenever there is one.
pub fn guessing() -> Speculation {
    Speculation { most: 5, control: SpeculationControl::Most, ..Speculation::lookup() }
}

/// Allows one token of `every`, another one at each place.
struct Pattern {
    every: u32,
    accepted: u32,
}

impl Constraint for Pattern {
    fn fill(&mut self, allowed: &mut TokenMask) {
        (0..500).filter(|id| (id + self.accepted).is_multiple_of(self.every)).for_each(|id| allowed.allow(id));
    }

    fn accept(&mut self, _: u32) {
        self.accepted += 1;
    }

    fn roll_back(&mut self, tokens: usize) {
        self.accepted -= tokens as u32;
    }
}

/// What a job is made of, again and again.
pub struct Recipe {
    pub request: Request,
    pub stops: Vec<String>,
    every: Option<u32>,
}

impl Recipe {
    pub fn job(&self) -> Job {
        let pattern = |every| Box::new(Pattern { every, accepted: 0 }) as Box<dyn Constraint>;
        Job { stops: self.stops.clone(), constraint: self.every.map(pattern), ..Job::new(self.request.clone()) }
    }
}

/// Recipes of many kinds.
pub fn recipes(rng: &mut Rng, count: u64) -> Vec<Recipe> {
    let recipe = |i: u64| {
        let prompt = (0..1 + rng.below(40)).map(|_| 3 + rng.below(300) as u32).collect();
        let drawn = SamplingParams { temperature: 0.9, top_k: 20, seed: i, ..SamplingParams::default() };
        let sampling = match rng.below(4) {
            0 => SamplingParams::greedy(),
            1 => SamplingParams { logprobs: Some(2), ..drawn },
            2 => SamplingParams { repetition_penalty: 1.2, ..drawn },
            _ => drawn,
        };
        let new = 1 + rng.below(40) as u32;
        let request = Request {
            sampling,
            stop_ids: if rng.below(3) == 0 { vec![3 + rng.below(300) as u32] } else { Vec::new() },
            min_new_tokens: if rng.below(4) == 0 { new.min(6) } else { 0 },
            bad_words: if rng.below(4) == 0 { vec![vec![3 + rng.below(300) as u32]] } else { Vec::new() },
            prompt_logprobs: (rng.below(6) == 0).then_some(1),
            cache_salt: if rng.below(3) == 0 { vec![i as u8] } else { Vec::new() },
            priority: rng.below(3) as i32,
            key: rng.below(4),
            ..Request::greedy(prompt, new)
        };
        let stops = if rng.below(3) == 0 { vec![" the".into(), ". ".into()] } else { Vec::new() };
        Recipe { request, stops, every: (rng.below(5) == 0).then(|| 2 + rng.below(3) as u32) }
    };
    (0..count).map(recipe).collect()
}

/// What a caller heard of an answer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Heard {
    pub tokens: Vec<u32>,
    pub logprobs: Vec<String>,
    pub text: String,
    pub end: String,
}

impl Heard {
    pub fn take(&mut self, event: Result<SessionEvent, SessionError>) {
        match event.unwrap() {
            SessionEvent::Token { token, logprobs, .. } => {
                assert!(self.end.is_empty(), "a token behind the end");
                self.tokens.push(token);
                self.logprobs.extend(logprobs.map(|of| format!("{of:?}")));
            }
            SessionEvent::PromptLogprobs { logprobs, .. } => self.logprobs.push(format!("{logprobs:?}")),
            SessionEvent::Text(text) => self.text.push_str(&text),
            SessionEvent::Finished(end) => self.end = format!("{:?}", end.reason),
            _ => {}
        }
    }
}

pub fn hear(answer: AnswerEventStream) -> Heard {
    let mut heard = Heard::default();
    answer.for_each(|event| heard.take(event));
    assert!(!heard.end.is_empty(), "an answer without an end");
    heard
}
